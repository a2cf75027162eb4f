import { describe, expect, it } from 'vitest';
import { Action } from './action.svelte';

describe('an action', () => {
  it('runs once at a time, and again when it has ended', async () => {
    const action = new Action();
    let runs = 0;
    let end = () => {};
    const work = () => {
      runs += 1;
      return new Promise<void>((resolve) => (end = resolve));
    };
    const first = action.run(work);
    expect(action.isBusy).toBe(true);
    expect(await action.run(work)).toBe(false);
    expect(runs).toBe(1);
    end();
    expect(await first).toBe(true);
    const second = action.run(work);
    end();
    expect(await second).toBe(true);
    expect(runs).toBe(2);
  });
});

/** Pages of fans and what they are made of. Organisers' dialogs run what they are given. */
const sources = import.meta.glob<string>(
  ['/src/{lib,routes}/**/*.svelte', '!/src/{lib,routes}/admin/**'],
  { query: '?raw', import: 'default', eager: true },
);
/** It is no button: coming back from the provider confirms a payment, and a reload repeats that. */
const AUTOMATIC = ['/src/routes/checkout/[kind]/[id]/result/+page.svelte'];

describe('every change that a fan makes', () => {
  const changing = Object.entries(sources).filter(([, text]) =>
    /api\.(POST|PUT|PATCH|DELETE)\(/.test(text),
  );

  it('is found', () => expect(changing.length).toBeGreaterThan(20));

  it.each(changing.filter(([path]) => !AUTOMATIC.includes(path)))('%s is an action', (_, text) =>
    expect(text).toMatch(/= new Action\(\)/),
  );

  it.each(Object.entries(sources))('%s has no other way to be busy', (_, text) =>
    expect(text).not.toMatch(/isBusy = \$state/),
  );
});

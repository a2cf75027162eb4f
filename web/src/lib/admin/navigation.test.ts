import { describe, expect, test } from 'vitest';
import { entriesFor, ENTRIES, isCurrent, mayOpen } from './navigation';

function entry(href: string) {
  const found = ENTRIES.find((one) => one.href === href);
  if (!found) throw new Error(`no entry ${href}`);
  return found;
}

describe('the menu of organisers', () => {
  test('an entry is current on its page and on the pages below', () => {
    expect(isCurrent(entry('/admin/events'), '/admin/events')).toBe(true);
    expect(isCurrent(entry('/admin/events'), '/admin/events/[id]/edit')).toBe(true);
    expect(isCurrent(entry('/admin'), '/admin/events')).toBe(false);
    expect(isCurrent(entry('/admin/events'), '/admin/eventsOfOthers')).toBe(false);
  });

  test('a role opens only what it sees, and the pages below', () => {
    expect(mayOpen('organiser', '/admin/users')).toBe(false);
    expect(mayOpen('support', '/admin/users/[id]')).toBe(true);
    expect(mayOpen('staff', '/admin/events/[id]')).toBe(false);
  });

  test('door staff see check-in and nothing else', () => {
    expect(entriesFor('staff').map((one) => one.href)).toEqual(['/admin/check-in']);
    expect(mayOpen('staff', '/admin/check-in/[id]')).toBe(true);
    expect(mayOpen('support', '/admin/check-in')).toBe(false);
  });

  test('administrators see everything', () => {
    expect(entriesFor('admin')).toEqual(ENTRIES);
  });
});

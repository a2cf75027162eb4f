/**
 * Compiles `messages/{ko,en}/*.json` to typed functions, one per text.
 *
 * A text may contain `{name}`, which becomes a parameter, and `{count|seat|seats}`, which chooses
 * by whether `count` is one, as a number or as it is shown. It fails if a language lacks a text or uses other parameters.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { readTexts } from './texts.js';

const PLACEHOLDER = /\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g;

const [ko, en] = [readTexts('ko'), readTexts('en')];

/** @type {string[]} */
const problems = [];
for (const key of new Set([...Object.keys(ko), ...Object.keys(en)])) {
  if (!(key in ko)) problems.push(`messages/ko lacks "${key}"`);
  else if (!(key in en)) problems.push(`messages/en lacks "${key}"`);
  else if (parameters(ko[key]).join() !== parameters(en[key]).join())
    problems.push(`"${key}" has other parameters in messages/ko than in messages/en`);
}
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exit(1);
}

/** @param {string | undefined} text */
function parameters(text = '') {
  return [...new Set([...text.matchAll(PLACEHOLDER)].map((match) => match[1]))].sort();
}

/** @param {string} text */
function expression(text) {
  if (parameters(text).length === 0) return JSON.stringify(text);
  let code = '';
  let end = 0;
  for (const match of text.matchAll(PLACEHOLDER)) {
    const [whole, name, one, other] = match;
    code += escape(text.slice(end, match.index));
    code +=
      one === undefined
        ? `\${p.${name}}`
        : `\${\`\${p.${name}}\` === '1' ? ${JSON.stringify(one)} : ${JSON.stringify(other)}}`;
    end = match.index + whole.length;
  }
  return `\`${code}${escape(text.slice(end))}\``;
}

/** @param {string} text */
function escape(text) {
  return text.replace(/[\\`$]/g, '\\$&');
}

/**
 * A key begins with its area. Each area is a module, so that a page loads only its own texts.
 *
 * @type {Map<string, string[]>}
 */
const areas = new Map();
for (const key of Object.keys(ko)) {
  const names = parameters(ko[key]);
  const signature =
    names.length === 0 ? '' : `p: { ${names.map((n) => `${n}: string | number`).join('; ')} }`;
  const body = `isEnglish() ? ${expression(en[key] ?? '')} : ${expression(ko[key] ?? '')}`;
  const area = key.split('_')[0] ?? key;
  const functions = areas.get(area) ?? [];
  functions.push(`/** ${ko[key]} */\nexport const ${key} = (${signature}): string => ${body};\n`);
  areas.set(area, functions);
}

const output = new URL('../src/lib/text/messages/', import.meta.url);
rmSync(output, { recursive: true, force: true });
mkdirSync(output);
const header = '// Generated from messages/*/*.json.\n';
for (const [area, functions] of areas)
  writeFileSync(
    new URL(`${area}.ts`, output),
    `${header}import { isEnglish } from '../locale';\n${functions.join('')}`,
  );
const exports = [...areas.keys()].map((area) => `export * from './${area}';\n`);
writeFileSync(new URL('index.ts', output), header + exports.join(''));

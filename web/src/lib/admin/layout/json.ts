/** Layouts as JSON files: exactly what the catalogue takes. */
import type { LayoutView } from '$lib/seatmap/hall';
import { type EditorLayout, fromWire, toWire } from './model';

export interface JsonProblem {
  readonly code: 'syntax' | 'type' | 'unknown' | 'missing';
  /** Where: `sections[0].rows[2].seats`; for a syntax error the line. */
  readonly path: string;
  readonly line: number | null;
}

export type JsonResult =
  { readonly layout: EditorLayout } | { readonly problems: readonly JsonProblem[] };

const PROBLEMS_MAX = 50;

export function writeJson(layout: EditorLayout): string {
  return `${JSON.stringify(toWire(layout), null, 2)}\n`;
}

export function readJson(text: string): JsonResult {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\ufeff/, ''));
  } catch {
    return { problems: [{ code: 'syntax', path: '', line: errorLine(text) }] };
  }
  const problems: JsonProblem[] = [];
  checkObject(unwrapped(value), '', LAYOUT, problems);
  if (problems.length > 0) return { problems: problems.slice(0, PROBLEMS_MAX) };
  return { layout: fromWire(unwrapped(value) as LayoutView) };
}

/** A layout alone, or inside of what the API takes and gives. */
function unwrapped(value: unknown): unknown {
  if (!isObject(value)) return value;
  const hall = isObject(value.hall) ? value.hall : value;
  return hall.layout ?? hall.layoutConfig ?? value;
}

/** The line of the first place where a text is not JSON; browsers do not always tell it. */
function errorLine(text: string): number {
  return text.slice(0, errorOffset(text)).split('\n').length;
}

const SPACE = /\s*/y;
const VALUE = /"(?:[^"\\\p{Cc}]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/uy;
const KEY = /"(?:[^"\\\p{Cc}]|\\.)*"\s*:/uy;

function errorOffset(text: string): number {
  let at = 0;
  const eat = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match) at = pattern.lastIndex;
    return match !== null;
  };
  const eatSign = (sign: string): boolean => {
    eat(SPACE);
    if (text[at] !== sign) return false;
    at += 1;
    return true;
  };
  const list = (end: string, item: () => boolean): boolean => {
    if (eatSign(end)) return true;
    do {
      eat(SPACE);
      if (!item()) return false;
    } while (eatSign(','));
    return eatSign(end);
  };
  const value = (): boolean => {
    eat(SPACE);
    if (eatSign('{')) return list('}', () => eat(KEY) && value());
    if (eatSign('[')) return list(']', value);
    return eat(VALUE);
  };
  value();
  eat(SPACE);
  return at;
}

type Kind = 'text' | 'integer' | 'integers' | readonly Fields[];
/** Which fields an object has; those with `?` may be missing. A list holds objects of one kind. */
interface Fields {
  readonly [name: string]: Kind;
}

const ROW: Fields = {
  label: 'text',
  seats: 'integer',
  'firstNumber?': 'integer',
  'numberStep?': 'integer',
  'offset?': 'integer',
  'accessible?': 'integers',
  'restrictedView?': 'integers',
};
const SECTION: Fields = {
  name: 'text',
  grade: 'text',
  'x?': 'integer',
  'y?': 'integer',
  'angleDegrees?': 'integer',
  'curveRadius?': 'integer',
  'seatPitch?': 'integer',
  'rowPitch?': 'integer',
  'viewImageUrl?': 'text',
  rows: [ROW],
};
const LAYOUT: Fields = { sections: [SECTION] };

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function checkObject(value: unknown, path: string, fields: Fields, problems: JsonProblem[]): void {
  const add = (code: JsonProblem['code'], at: string) =>
    problems.push({ code, path: at, line: null });
  if (problems.length >= PROBLEMS_MAX) return;
  if (!isObject(value)) return void add('type', path);
  const inside = (name: string) => (path === '' ? name : `${path}.${name}`);
  for (const name of Object.keys(value))
    if (!(name in fields) && !(`${name}?` in fields)) add('unknown', inside(name));
  for (const [declared, kind] of Object.entries(fields)) {
    const name = declared.replace('?', '');
    const field = value[name];
    if (field === undefined) {
      if (name === declared) add('missing', inside(name));
    } else if (typeof kind === 'string') {
      if (!isOfKind(field, kind)) add('type', inside(name));
    } else if (!Array.isArray(field)) add('type', inside(name));
    else field.forEach((one, i) => checkObject(one, `${inside(name)}[${i}]`, kind[0]!, problems));
  }
}

function isOfKind(value: unknown, kind: 'text' | 'integer' | 'integers'): boolean {
  if (kind === 'text') return typeof value === 'string';
  if (kind === 'integer') return Number.isInteger(value);
  return Array.isArray(value) && value.every(Number.isInteger);
}

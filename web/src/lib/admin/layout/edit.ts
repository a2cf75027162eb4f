/** Changes of a layout: each takes one and returns the next. */
import { boundsAround, middleOf, mirrored, moved, turned } from './geometry';
import type { EditorLayout, EditorRow, EditorSection } from './model';
import { freeName, indexOfNumber, nextKey, numberAt } from './model';
import { labelAfter, schemeOf } from './numbering';
import { isSelected, type Selection, selectedSections } from './selection';
import { regrade } from './split';

export type Flag = 'accessible' | 'restrictedView';

export function changeSections(
  layout: EditorLayout,
  keys: { has(key: number): boolean },
  change: (section: EditorSection) => EditorSection,
): EditorLayout {
  let hasChanged = false;
  const sections = layout.sections.map((section) => {
    if (!keys.has(section.key)) return section;
    const changed = change(section);
    if (changed !== section) hasChanged = true;
    return changed;
  });
  return hasChanged ? { sections } : layout;
}

export function addSection(layout: EditorLayout, section: EditorSection): EditorLayout {
  return { sections: [...layout.sections, section] };
}

export function moveSelected(
  layout: EditorLayout,
  selection: Selection,
  dx: number,
  dy: number,
): EditorLayout {
  return changeSections(layout, selection, (section) => moved(section, dx, dy));
}

/** Moves the rows that are selected along their section. */
export function shiftRows(layout: EditorLayout, selection: Selection, dx: number): EditorLayout {
  return changeSections(layout, selection, (section) => {
    const part = selection.get(section.key);
    const shift = (row: EditorRow, index: number) =>
      part === null || part?.has(index) ? { ...row, offset: Math.round(row.offset + dx) } : row;
    return { ...section, rows: section.rows.map(shift) };
  });
}

export function turnSelected(
  layout: EditorLayout,
  selection: Selection,
  degrees: number,
): EditorLayout {
  const sections = selectedSections(layout, selection);
  if (sections.length === 0) return layout;
  // A single section turns around its own middle, several around their common one.
  const around = middleOf(boundsAround(sections));
  return changeSections(layout, selection, (section) => turned(section, around, degrees));
}

/** Mirrors at the middle of what is selected, or at the middle of the stage. */
export function mirrorSelected(
  layout: EditorLayout,
  selection: Selection,
  at: 'selection' | 'stage' = 'selection',
): EditorLayout {
  const sections = selectedSections(layout, selection);
  if (sections.length === 0) return layout;
  const x = at === 'stage' ? 0 : middleOf(boundsAround(sections)).x;
  return changeSections(layout, selection, (section) => mirrored(section, x));
}

/** Adds copies with names and keys of their own; also returns their keys. */
export function addCopies(
  layout: EditorLayout,
  sections: readonly EditorSection[],
  dx: number,
  dy: number,
): { layout: EditorLayout; keys: number[] } {
  const keys: number[] = [];
  let result = layout;
  for (const section of sections) {
    const key = nextKey();
    keys.push(key);
    const name = freeName(result, section.name);
    result = addSection(result, { ...moved(section, dx, dy), key, name });
  }
  return { layout: result, keys };
}

export function deleteSelected(layout: EditorLayout, selection: Selection): EditorLayout {
  let result = layout;
  for (const section of selectedSections(layout, selection)) {
    const part = selection.get(section.key);
    if (part === null)
      result = { sections: result.sections.filter((one) => one.key !== section.key) };
    else
      result = regrade(result, section.key, (row, seat) =>
        isSelected(selection, section.key, row, seat) ? null : section.grade,
      );
  }
  return result;
}

/** Paints a grade; a section that then has two grades is cut. */
export function paintGrade(
  layout: EditorLayout,
  selection: Selection,
  grade: string,
): EditorLayout {
  let result = layout;
  for (const section of selectedSections(layout, selection))
    result = regrade(result, section.key, (row, seat) =>
      isSelected(selection, section.key, row, seat) ? grade : section.grade,
    );
  return result;
}

/** Marks seats, or takes the mark away. */
export function setFlag(
  layout: EditorLayout,
  selection: Selection,
  flag: Flag,
  isOn: boolean,
): EditorLayout {
  return changeSections(layout, selection, (section) => {
    const change = (row: EditorRow, index: number) => {
      const numbers = new Set(row[flag]);
      for (let seat = 0; seat < row.seats; seat++) {
        if (!isSelected(selection, section.key, index, seat)) continue;
        if (isOn) numbers.add(numberAt(row, seat));
        else numbers.delete(numberAt(row, seat));
      }
      if (numbers.size === row[flag].length && row[flag].every((one) => numbers.has(one)))
        return row;
      return { ...row, [flag]: [...numbers].sort((a, b) => a - b) };
    };
    const rows = section.rows.map(change);
    return rows.some((row, index) => row !== section.rows[index]) ? { ...section, rows } : section;
  });
}

/** More rows at the back, or fewer. */
export function withRowCount(section: EditorSection, count: number): EditorSection {
  const rows = section.rows.slice(0, count);
  while (rows.length < count) {
    const last = rows.at(-1);
    if (!last) return section;
    const label = freeLabel(rows, labelAfter(last.label));
    rows.push({ ...last, label, accessible: [], restrictedView: [] });
  }
  return { ...section, rows };
}

function freeLabel(rows: readonly EditorRow[], wish: string): string {
  const taken = new Set(rows.map((row) => row.label));
  let label = wish;
  while (taken.has(label)) label = labelAfter(label);
  return label;
}

/** More seats in a row, or fewer. The numbers begin where they began. */
export function withSeats(row: EditorRow, seats: number): EditorRow {
  const { from, start } = schemeOf(row);
  const step = Math.abs(row.numberStep);
  const firstNumber = from === 'left' ? row.firstNumber : start + step * (seats - 1);
  const changed = { ...row, seats, firstNumber };
  const exists = (number: number) => indexOfNumber(changed, number) !== null;
  return {
    ...changed,
    accessible: row.accessible.filter(exists),
    restrictedView: row.restrictedView.filter(exists),
  };
}

export function changeRow(
  section: EditorSection,
  index: number,
  change: (row: EditorRow) => EditorRow,
): EditorSection {
  const rows = section.rows.map((row, i) => (i === index ? change(row) : row));
  return { ...section, rows };
}

export function moveSectionInOrder(layout: EditorLayout, key: number, by: number): EditorLayout {
  const at = layout.sections.findIndex((section) => section.key === key);
  const to = at + by;
  if (at === -1 || to < 0 || to >= layout.sections.length) return layout;
  const sections = [...layout.sections];
  const [section] = sections.splice(at, 1);
  sections.splice(to, 0, section!);
  return { sections };
}

/** Moves everything so that the stage is in front of the middle. */
export function centreOnStage(layout: EditorLayout): EditorLayout {
  if (layout.sections.length === 0) return layout;
  const { x } = middleOf(boundsAround(layout.sections));
  const dx = -Math.round(x);
  if (dx === 0) return layout;
  return { sections: layout.sections.map((section) => moved(section, dx, 0)) };
}

/** The state of the layout editor and its commands; pages and keys call the same ones. */
import * as m from '$lib/text/messages';
import { draw } from './drawing';
import * as edit from './edit';
import type { Tool } from './editorMap';
import {
  boundsAround,
  type NewSection,
  type Point,
  polygonSection,
  rectangleSection,
} from './geometry';
import { History } from './history';
import {
  EMPTY_LAYOUT,
  type EditorLayout,
  type EditorSection,
  freeName,
  gradesOf,
  isSameLayout,
  makeRow,
  makeSection,
  seatCount,
  seatsOf,
} from './model';
import { labelAt, type LabelScheme, labelRows, numberSeats, type SeatScheme } from './numbering';
import {
  everything,
  type Level,
  NOTHING,
  only,
  pruned,
  sectionsOnly,
  type Selection,
  selectedSeatCount,
  selectedSections,
  targetOf,
  toggled,
  withTarget,
} from './selection';
import { findMistakes } from './validate';

export type Brush = 'grade' | 'accessible' | 'restrictedView' | 'plain';

const COPY_SHIFT = 100;
const FIRST_ROW_Y = 600;
/** Copies of this page can be pasted in another hall. */
let clipboard: readonly EditorSection[] = [];

export class Editor {
  #history = $state.raw(History.of<EditorLayout>(EMPTY_LAYOUT));
  #saved = $state.raw<EditorLayout>(EMPTY_LAYOUT);
  selection = $state.raw<Selection>(NOTHING);
  level = $state<Level>('sections');
  tool = $state<Tool>('select');
  isSnapping = $state(true);
  isReadOnly = $state(false);
  brush = $state<Brush>('grade');
  grade = $state('R');
  /** The seat that arrow keys have reached, as its number in the drawing. */
  cursor = $state<number | null>(null);
  /** What has just happened, for screen readers. */
  spoken = $state('');

  readonly layout = $derived(this.#history.value);
  readonly drawing = $derived(draw(this.layout));
  readonly mistakes = $derived(findMistakes(this.layout));
  readonly grades = $derived(gradesOf(this.layout));
  readonly seatCount = $derived(seatCount(this.layout));
  readonly selected = $derived(selectedSections(this.layout, this.selection));
  readonly selectedSeats = $derived(selectedSeatCount(this.layout, this.selection));
  readonly isDirty = $derived(!isSameLayout(this.layout, this.#saved));
  readonly undoLabel = $derived(this.#history.undoLabel);
  readonly redoLabel = $derived(this.#history.redoLabel);

  /** Opens a layout; there is nothing to undo yet. */
  open(layout: EditorLayout): void {
    this.#history = History.of(layout);
    this.#saved = layout;
    this.selection = NOTHING;
    this.cursor = null;
    this.grade = gradesOf(layout)[0] ?? 'R';
  }

  /** The layout is stored now. */
  markSaved(layout: EditorLayout): void {
    this.#saved = layout;
  }

  say(text: string): void {
    // The same sentence twice is read out twice.
    this.spoken = this.spoken === text ? `${text}\u00a0` : text;
  }

  /** Makes a layout the present one. Changes with one merge key are one step of undo. */
  change(layout: EditorLayout, label: string, mergeKey: string | null = null): void {
    if (this.isReadOnly || layout === this.layout) return;
    this.#history = this.#history.push(layout, label, mergeKey);
    this.selection = pruned(layout, this.selection);
    this.cursor = null;
    this.say(label);
  }

  undo(): void {
    const label = this.undoLabel;
    if (label === null || this.isReadOnly) return;
    this.#history = this.#history.undo();
    this.selection = pruned(this.layout, this.selection);
    this.say(m.adminLayout_undone({ what: label }));
  }

  redo(): void {
    const label = this.redoLabel;
    if (label === null || this.isReadOnly) return;
    this.#history = this.#history.redo();
    this.selection = pruned(this.layout, this.selection);
    this.say(m.adminLayout_redone({ what: label }));
  }

  select(selection: Selection): void {
    this.selection = selection;
    this.#history = this.#history.sealed();
    this.say(this.describeSelection());
  }

  describeSelection(): string {
    const [section] = this.selected;
    if (!section) return m.adminLayout_selected_none();
    if (this.level === 'sections' && this.selected.length === 1)
      return m.adminLayout_selected_section({ name: section.name, seats: seatsOf(section) });
    return m.adminLayout_selected_many({
      sections: this.selected.length,
      seats: this.selectedSeats,
    });
  }

  setLevel(level: Level): void {
    this.level = level;
    this.select(NOTHING);
  }

  selectAll(): void {
    this.select(everything(this.layout));
  }

  /** The section after the one that is selected, around and around. */
  selectNext(by: number): void {
    const { sections } = this.layout;
    if (sections.length === 0) return;
    const at = sections.findIndex((section) => this.selection.has(section.key));
    const next = at === -1 ? 0 : (at + by + sections.length) % sections.length;
    this.select(only({ key: sections[next]!.key }));
  }

  /** Moves the cursor to the next seat in a direction; with `extend` what it passes is selected. */
  moveCursor(stepX: number, stepY: number, extend: boolean): void {
    const { drawing } = this;
    if (!drawing) return;
    const next =
      this.cursor === null
        ? drawing.grid.nearest(0, 0, Infinity)
        : drawing.grid.neighbour(this.cursor, stepX, stepY);
    if (next === null) return;
    this.cursor = next;
    const target = targetOf(drawing.layout, drawing.hall, next, this.level);
    if (extend) this.select(withTarget(this.selection, target));
    const section = this.layout.sections.find((one) => one.key === target.key)!;
    const label = section.rows[target.row ?? 0]!.label;
    this.say(
      target.seat === undefined
        ? m.adminLayout_cursor_row({ section: section.name, row: label })
        : m.seats_label({ section: section.name, row: label, number: this.#numberAt(next) }),
    );
  }

  #numberAt(seat: number): number {
    const { hall } = this.drawing!;
    const row = hall.rows[hall.rowOf[seat]!]!;
    return row.firstNumber + row.numberStep * (seat - row.firstSeat);
  }

  toggleCursor(): void {
    const { drawing, cursor } = this;
    if (!drawing || cursor === null) return;
    this.select(
      toggled(this.selection, targetOf(drawing.layout, drawing.hall, cursor, this.level)),
    );
  }

  #wish(): NewSection {
    const name = freeName(this.layout, labelAt('letters', this.layout.sections.length + 1));
    return { name, grade: this.grade };
  }

  #add(section: EditorSection): void {
    this.change(
      edit.addSection(this.layout, section),
      m.adminLayout_added({ name: section.name, seats: seatsOf(section) }),
    );
    this.level = 'sections';
    this.selection = only({ key: section.key });
  }

  addRectangle(from: Point, to: Point): void {
    this.#add(rectangleSection(from, to, this.#wish()));
    this.tool = 'select';
  }

  addPolygon(corners: readonly Point[]): void {
    const section = polygonSection(corners, this.#wish());
    if (!section) return this.say(m.adminLayout_polygon_small());
    this.#add(section);
    this.tool = 'select';
  }

  /** A section behind all others, without a pointer. */
  addBehind(rows = 10, seats = 20): void {
    const { sections } = this.layout;
    const bottom = sections.length > 0 ? boundsAround(sections).bottom + 100 : FIRST_ROW_Y;
    const { name, grade } = this.#wish();
    const lines = Array.from({ length: rows }, (_, i) => makeRow(String(i + 1), seats));
    this.#add(makeSection(name, grade, lines, { y: Math.round(bottom) }));
  }

  move(dx: number, dy: number, mergeKey: string | null = null): void {
    if (this.selection.size === 0) return;
    if (this.level !== 'sections') {
      const shifted = edit.shiftRows(this.layout, this.selection, dx);
      return this.change(shifted, m.adminLayout_shifted(), mergeKey);
    }
    this.change(
      edit.moveSelected(this.layout, this.selection, dx, dy),
      m.adminLayout_moved({ count: this.selected.length }),
      mergeKey,
    );
    const [section] = this.selected;
    if (section && this.selected.length === 1)
      this.say(m.adminLayout_moved_to({ name: section.name, x: section.x, y: section.y }));
  }

  turn(degrees: number): void {
    this.change(
      edit.turnSelected(this.layout, this.selection, degrees),
      m.adminLayout_turned({ degrees }),
    );
  }

  mirror(at: 'selection' | 'stage'): void {
    this.change(
      edit.mirrorSelected(this.layout, this.selection, at),
      m.adminLayout_mirrored({ count: this.selected.length }),
    );
  }

  copy(): void {
    if (this.selected.length === 0) return;
    clipboard = this.selected;
    this.say(m.adminLayout_copied({ count: clipboard.length }));
  }

  paste(): void {
    this.#addCopies(clipboard, COPY_SHIFT, COPY_SHIFT, m.adminLayout_pasted);
  }

  duplicate(): void {
    this.#addCopies(this.selected, COPY_SHIFT, COPY_SHIFT, m.adminLayout_duplicated);
  }

  #addCopies(
    sections: readonly EditorSection[],
    dx: number,
    dy: number,
    label: (p: { count: number }) => string,
  ): void {
    if (sections.length === 0) return;
    const { layout, keys } = edit.addCopies(this.layout, sections, dx, dy);
    this.change(layout, label({ count: keys.length }));
    this.level = 'sections';
    this.selection = sectionsOnly(keys);
  }

  deleteSelected(): void {
    if (this.selection.size === 0) return;
    const label = m.adminLayout_deleted({ count: this.selectedSeats });
    this.change(edit.deleteSelected(this.layout, this.selection), label);
    this.selection = pruned(this.layout, this.level === 'sections' ? this.selection : NOTHING);
  }

  /** What the brush does with seats. */
  paint(painted: Selection, brush: Brush = this.brush): void {
    if (brush === 'grade')
      return this.change(
        edit.paintGrade(this.layout, painted, this.grade),
        m.adminLayout_painted({ grade: this.grade }),
      );
    if (brush === 'plain') {
      const without = edit.setFlag(this.layout, painted, 'accessible', false);
      return this.change(
        edit.setFlag(without, painted, 'restrictedView', false),
        m.adminLayout_marked_plain(),
      );
    }
    this.change(
      edit.setFlag(this.layout, painted, brush, true),
      brush === 'accessible'
        ? m.adminLayout_marked_accessible()
        : m.adminLayout_marked_restricted(),
    );
  }

  /** Changes the selected sections; typing in one field is one step of undo. */
  changeSelected(change: (section: EditorSection) => EditorSection, field: string): void {
    this.change(
      edit.changeSections(this.layout, this.selection, change),
      m.adminLayout_changed({ what: field }),
      `${field}/${[...this.selection.keys()].join()}`,
    );
  }

  numberSelected(scheme: SeatScheme): void {
    const change = (section: EditorSection) => ({
      ...section,
      rows: section.rows.map((row) => numberSeats(row, scheme)),
    });
    const layout = edit.changeSections(this.layout, this.selection, change);
    this.change(layout, m.adminLayout_numbered());
  }

  labelSelected(scheme: LabelScheme): void {
    const change = (section: EditorSection) => ({
      ...section,
      rows: labelRows(section.rows, scheme),
    });
    const layout = edit.changeSections(this.layout, this.selection, change);
    this.change(layout, m.adminLayout_labelled());
  }

  moveInOrder(key: number, by: number): void {
    this.change(edit.moveSectionInOrder(this.layout, key, by), m.adminLayout_reordered());
  }

  centre(): void {
    this.change(edit.centreOnStage(this.layout), m.adminLayout_centred());
  }
}

/** Mistakes in words, with their places. */
import * as m from '$lib/text/messages';
import type { CsvProblem } from './csv';
import type { JsonProblem } from './json';
import {
  GRADES_MAX,
  LAYOUT_BYTES_MAX,
  type Mistake,
  NAME_CHARS_MAX,
  NUMBER_MAX,
  quoted,
  ROWS_MAX,
  SEATS_MAX,
  SEATS_PER_ROW_MAX,
  SECTIONS_MAX,
} from './validate';

/** In English these are the catalogue's own sentences. */
export function mistakeSentence({ code, values }: Mistake): string {
  const section = quoted(values.section ?? '');
  const row = quoted(values.row ?? '');
  switch (code) {
    case 'noSection':
      return m.adminLayout_mistake_no_section();
    case 'tooManySections':
      return m.adminLayout_mistake_sections({ max: SECTIONS_MAX });
    case 'tooManyRows':
      return m.adminLayout_mistake_rows({ max: ROWS_MAX });
    case 'tooManySeats':
      return m.adminLayout_mistake_seats({ max: SEATS_MAX });
    case 'tooManyGrades':
      return m.adminLayout_mistake_grades({ max: GRADES_MAX });
    case 'tooLong':
      return m.adminLayout_mistake_long({ max: LAYOUT_BYTES_MAX });
    case 'name':
      return m.adminLayout_mistake_name({ name: section, max: NAME_CHARS_MAX });
    case 'sameSection':
      return m.adminLayout_mistake_same_section({ name: section });
    case 'noRow':
      return m.adminLayout_mistake_no_row({ section });
    case 'sameRow':
      return m.adminLayout_mistake_same_row({ section, row });
    case 'rowSize':
      return m.adminLayout_mistake_row_size({ section, row, max: SEATS_PER_ROW_MAX });
    case 'seatNumber':
      return m.adminLayout_mistake_number({ section, row, max: NUMBER_MAX });
    case 'numberStep':
      return m.adminLayout_mistake_step({ section, row });
    case 'noSuchSeat':
      return m.adminLayout_mistake_no_seat({ section, row, number: values.number ?? 0 });
    case 'drawing':
      return m.adminLayout_mistake_drawing({ section });
    case 'picture':
      return m.adminLayout_mistake_picture({ section });
  }
}

const CSV: Record<CsvProblem['code'], (p: { value: string }) => string> = {
  empty: () => m.adminLayout_csv_empty(),
  quote: () => m.adminLayout_csv_quote(),
  missingColumn: m.adminLayout_csv_missing_column,
  unknownColumn: m.adminLayout_csv_unknown_column,
  emptyCell: m.adminLayout_csv_empty_cell,
  notANumber: m.adminLayout_csv_not_a_number,
  notYesNo: m.adminLayout_csv_not_yes_no,
  otherGrade: m.adminLayout_csv_other_grade,
  otherShape: m.adminLayout_csv_other_shape,
  seatTwice: m.adminLayout_csv_seat_twice,
  numbersJump: m.adminLayout_csv_numbers_jump,
  notInRow: m.adminLayout_csv_not_in_row,
  notAtShape: m.adminLayout_csv_not_at_shape,
  coordinatesMissing: m.adminLayout_csv_coordinates,
};

export function csvSentence({ line, code, value }: CsvProblem): string {
  return m.adminLayout_line({ line, text: CSV[code]({ value }) });
}

export function jsonSentence({ code, path, line }: JsonProblem): string {
  if (code === 'syntax')
    return line === null
      ? m.adminLayout_json_syntax()
      : m.adminLayout_line({ line, text: m.adminLayout_json_syntax() });
  const place = path || 'layout';
  if (code === 'missing') return m.adminLayout_json_missing({ path: place });
  if (code === 'unknown') return m.adminLayout_json_unknown({ path: place });
  return m.adminLayout_json_type({ path: place });
}

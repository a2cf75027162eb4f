/** What a list shows of its rows. */
export interface Column<Row> {
  readonly key: string;
  readonly label: string;
  /** Without it, the list's `cell` shows the cell. */
  readonly text?: (row: Row) => string;
  /** `end` for figures. */
  readonly align?: 'end';
  /** Buttons; a card shows them without the column's name. */
  readonly isActions?: boolean;
}

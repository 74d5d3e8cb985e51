/** What a test compares of rows: one field of each, or several. */

export function column<Row, Field extends keyof Row>(rows: readonly Row[], field: Field): Row[Field][] {
  return rows.map((row) => row[field]);
}

export function columns<Row, Field extends keyof Row>(
  rows: readonly Row[],
  ...fields: readonly Field[]
): Row[Field][][] {
  return rows.map((row) => fields.map((field) => row[field]));
}

/** Without the prototypes that rows of a database have. */
export function plain<Row extends object>(rows: readonly Row[]): Row[] {
  return rows.map((row) => ({ ...row }));
}

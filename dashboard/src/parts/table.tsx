/** Tables by columns, sections, and facts about one thing. */

import type { ComponentChildren, RenderableProps } from "preact";

/** A column without a title has the actions of a row. Figures have the class `right`. */
export type Column<Row> = readonly [
  title: ComponentChildren,
  cell: (row: Row) => ComponentChildren,
  className?: string,
  hint?: string,
];

interface TableProps<Row> {
  readonly label: string;
  readonly columns: readonly (Column<Row> | false)[];
  /** Undefined while they are not known. */
  readonly rows: readonly Row[] | null | undefined;
  readonly keyOf: (row: Row) => string;
  readonly rowClass?: (row: Row) => string | undefined;
  readonly empty?: ComponentChildren;
}

/** On a narrow screen each row is a card, whose cells carry the names of their columns. */
export function Table<Row>({ label, columns: all, rows, keyOf, rowClass, empty = null }: TableProps<Row>) {
  if (!rows || rows.length === 0) return rows ? <>{empty}</> : null;
  const columns = all.filter((column) => column !== false);
  const isFigure = (name = ""): boolean => name.includes("right");
  // The first cell that is no figure needs no name.
  const first = columns.findIndex(
    ([title, , name]) => title !== "" && typeof title === "string" && !isFigure(name),
  );
  return (
    <Scroll label={label}>
      <thead>
        <tr>
          {columns.map(([title, , name = "", hint], at) => (
            <th
              key={at}
              class={title === "" ? "" : name.replace(/ ?(?:num|wide-cell|mono)/g, "")}
              title={hint}
            >
              {title === "" ? <span class="unseen">Actions</span> : title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)} class={rowClass?.(row)}>
            {columns.map(([title, cell, name], at) => (
              <td key={at} class={name} data-label={typeof title === "string" && at !== first ? title : ""}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </Scroll>
  );
}

/** A table in a box of its own, which scrolls sideways. */
export function Scroll({ label, class: name, children }: RenderableProps<{ label: string; class?: string }>) {
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      <table class={name}>{children}</table>
    </div>
  );
}

/** A part of a page under a heading of its own. */
export function Section({ id, title, children }: { id: string; title: string; children: ComponentChildren }) {
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}

/** Names and values. */
export function Facts({ of }: { of: readonly (readonly [string, ComponentChildren] | false | null)[] }) {
  return (
    <dl class="facts">
      {of.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

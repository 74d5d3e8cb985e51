import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/**
 * A table in a box of its own. On a narrow screen each row is a card, whose cells carry the names of their columns; one that only makes sense
 * as a table (`matrix`) scrolls sideways in its box.
 */
export function Table({
  label,
  head,
  children,
  class: extra = "",
}: {
  label: string;
  head: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}) {
  const table = useRef<HTMLTableElement>(null);
  useLayoutEffect(() => nameCells(table.current!));
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      <table ref={table} class={extra}>
        <thead>
          <tr>{head}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** The first cell that is no number speaks for itself, and so do boxes and buttons. */
function nameCells(table: HTMLTableElement): void {
  const heads = [...table.tHead!.rows[0]!.cells];
  const names = heads.map((head) =>
    head.classList.contains("check") || head.querySelector(".unseen") ? "" : (head.textContent ?? ""),
  );
  const first = heads.findIndex((head, index) => names[index] !== "" && !head.classList.contains("right"));
  for (const row of table.tBodies[0]!.rows) {
    for (const [index, cell] of [...row.cells].entries()) {
      const name = index === first ? "" : (names[index] ?? "");
      if ((cell.dataset["label"] ?? "") !== name) cell.dataset["label"] = name;
    }
  }
}

/** The name of a thing beside its value. */
export function Facts({ of }: { of: readonly (readonly [string, ComponentChildren] | null)[] }) {
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

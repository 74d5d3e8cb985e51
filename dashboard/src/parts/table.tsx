import type { ComponentChildren } from "preact";

/** A table in a box of its own: on a narrow screen the box scrolls sideways and the page does not. */
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
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      <table class={extra}>
        <thead>
          <tr>{head}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
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

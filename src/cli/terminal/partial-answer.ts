import type { Terminal } from "./terminal.ts";
import { say, styled } from "./terminal.ts";

/** Says whose part is missing, where every node keeps its own jobs and some were not reached. */
export function sayPartial(
  terminal: Pick<Terminal, "err">,
  nodes: readonly { readonly name: string; readonly reachable: boolean }[] | undefined,
): void {
  sayUnreachable(
    terminal,
    (nodes ?? []).flatMap(({ name, reachable }) => (reachable ? [] : [name])),
  );
}

export function sayUnreachable(terminal: Pick<Terminal, "err">, names: readonly string[]): void {
  if (names.length === 0) return;
  const which = names.join(", ");
  say(
    terminal,
    `${styled(terminal.err, "yellow", "partial:")} ${which} could not be reached, so what ${which} has is missing here`,
  );
}

/** Asks for confirmation before an action that cannot easily be undone. */

import { createInterface } from "node:readline";
import { CliFailure, EXIT } from "../failure.ts";
import type { Terminal } from "./terminal.ts";
import { isAttended, say, styled } from "./terminal.ts";

export interface ConfirmOptions {
  readonly yes?: boolean;
}

/**
 * Resolves if it is to be done. What was named one by one goes ahead where nobody can be asked, so that scripts need nothing; what
 * only a filter names (`many`) needs `--yes` there.
 */
export async function confirm(
  terminal: Terminal,
  { yes }: ConfirmOptions,
  question: string,
  { many = false }: { readonly many?: boolean } = {},
): Promise<void> {
  if (yes) return;
  if (!isAttended(terminal)) {
    if (!many) return;
    throw new CliFailure(
      EXIT.usage,
      `${question.replace(/\?$/, "")}: nobody is here to say yes`,
      "add --yes, or run it on a terminal; --dry-run only counts",
    );
  }
  if (await asked(terminal, question)) return;
  throw new CliFailure(EXIT.failure, "nothing was changed");
}

async function asked(terminal: Terminal, question: string): Promise<boolean> {
  const { err } = terminal;
  const lines = createInterface({ input: terminal.input as NodeJS.ReadableStream, terminal: false });
  try {
    for (;;) {
      err.write(`${question} ${styled(err, "dim", "[y/N]")} `);
      const answer = await new Promise<string | null>((resolve) => {
        lines.once("line", resolve);
        lines.once("close", () => resolve(null));
      });
      if (answer === null) {
        say(terminal, "");
        return false;
      }
      const word = answer.trim().toLowerCase();
      if (["y", "yes"].includes(word)) return true;
      if (["", "n", "no"].includes(word)) return false;
      say(terminal, "please answer y or n");
    }
  } finally {
    lines.close();
  }
}

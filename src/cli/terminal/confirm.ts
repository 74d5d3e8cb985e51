/** Asks for confirmation before an action that cannot easily be undone. */

import { CliFailure, EXIT } from "../failure.ts";
import { isAttended, questionStreams, type Terminal } from "./terminal.ts";

export interface ConfirmOptions {
  readonly yes?: boolean;
}

/**
 * Resolves if the answer is yes. Without a terminal, jobs and nodes that were named one by one need no answer, so that
 * scripts need no option; what only a filter selects (`many`) needs `--yes`.
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
    const message = `${question.replace(/\?$/, "")}: confirmation needed`;
    throw new CliFailure(EXIT.usage, message, "pass --yes, or run it on a terminal; --dry-run only counts");
  }
  const { confirm: ask } = await import("@clack/prompts");
  const answer = await ask({ message: question, initialValue: false, ...questionStreams(terminal) });
  // Ctrl-C gives a symbol.
  if (answer !== true) throw new CliFailure(EXIT.failure, "nothing was changed");
}

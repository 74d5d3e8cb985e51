import { setTimeout as sleep } from "node:timers/promises";
import { noteRun, type Context } from "../run-notes.ts";

/** Says each of its lines, with time for a kill in between. */
export default async function chatty(
  { lines }: { readonly lines: number },
  context: Context,
): Promise<unknown> {
  const noted = noteRun(context);
  for (let line = 1; line <= lines; line++) {
    context.log(`line ${line}`);
    context.progress((100 * line) / lines);
    await sleep(60, undefined, { signal: context.signal });
  }
  return noted;
}

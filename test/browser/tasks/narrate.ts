import { setTimeout as sleep } from "node:timers/promises";
import type { TaskContext } from "batonjs/task";

interface Narrate {
  readonly lines: number;
  readonly perSecond: number;
}

/** Writes a log at a steady pace, with its progress. */
export default async function narrate(
  { lines, perSecond }: Narrate,
  { log, progress, signal }: TaskContext,
): Promise<number> {
  const every = 20;
  const each = Math.max(1, Math.round((perSecond * every) / 1_000));
  const startedAt = performance.now();
  for (let n = 0; n < lines;) {
    for (let k = 0; k < each && n < lines; k++)
      log(`line ${++n} of ${lines}: the quick brown fox jumps over the lazy dog`);
    progress((100 * n) / lines, `${n} lines`);
    const due = startedAt + (n / perSecond) * 1_000;
    await sleep(Math.max(1, due - performance.now()), undefined, { signal });
  }
  return lines;
}

/**
 * Counts slowly. Shows what a long handler owes its users: progress, logs, and an end when it is told to stop.
 *
 *     baton submit slow-count '{"to":20}' --wait
 *     baton jobs logs -f <job-id>
 *     baton jobs cancel <job-id>
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { TaskContext } from "batonjs/task";

export default async function slowCount(
  payload: { readonly to?: number; readonly everyMs?: number } | null,
  { log, progress, signal, attempt }: TaskContext,
): Promise<number> {
  const to = payload?.to ?? 10;
  const everyMs = payload?.everyMs ?? 500;
  log(`attempt ${attempt}: counting to ${to}`);
  for (let n = 1; n <= to; n++) {
    // Rejects the moment the job is cancelled, runs out of time or its node stops; that ends the run.
    await sleep(everyMs, undefined, { signal });
    log.debug(`${n}`);
    progress((100 * n) / to, `${n} of ${to}`);
  }
  return to;
}

import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

interface Work {
  readonly ms?: number;
  /** It ends when this file is there. */
  readonly until?: string;
  /** Characters that its result has in addition. */
  readonly filler?: number;
  /** Fails in its first run. */
  readonly flaky?: boolean;
  /** Where each run leaves a line. */
  readonly ledger?: string;
}

interface Context {
  readonly attempt: number;
  readonly job: { readonly id: string; readonly jobEpoch: number };
}

/** Takes a while, and tells under which epoch it ran. */
export default async function work(
  { ms = 0, until, filler = 0, flaky, ledger }: Work,
  { attempt, job }: Context,
): Promise<unknown> {
  if (ledger !== undefined) appendFileSync(ledger, `${job.id}:${job.jobEpoch}\n`);
  if (ms > 0) await sleep(ms);
  while (until !== undefined && !existsSync(until)) await sleep(10);
  if (flaky && attempt === 1) throw new Error("the first time always fails");
  return { epoch: job.jobEpoch, ...(filler > 0 && { filler: "x".repeat(filler) }) };
}

/** What handlers leave behind of every run, past Baton: a line in a file of their process's own. */

import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The directory, in the environment of every agent. */
export const NOTES_VARIABLE = "PROOF_NOTES";

/** What these handlers use of theirs. */
export interface Context {
  readonly signal: AbortSignal;
  readonly log: (text: string) => void;
  readonly progress: (percent: number) => void;
  readonly job: { readonly id: string; readonly jobEpoch: number; readonly failures: number };
}

/** Written before anything else is done. Also what the run answers with, so that the result tells whose it is. */
export function noteRun({ job }: Context): { readonly epoch: number } {
  const path = join(process.env[NOTES_VARIABLE]!, `${process.pid}`);
  appendFileSync(path, `${job.id} ${job.jobEpoch}\n`);
  return { epoch: job.jobEpoch };
}

/** How often each run of each job was begun. */
export function readRuns(directory: string): Map<string, Map<number, number>> {
  const runs = new Map<string, Map<number, number>>();
  for (const file of readdirSync(directory)) {
    // The last line of a process that was killed may be half a line; nobody has told anybody of that run.
    for (const line of readFileSync(join(directory, file), "utf8").split("\n").slice(0, -1)) {
      const [id, epoch] = line.split(" ") as [string, string];
      const epochs = runs.get(id) ?? new Map<number, number>();
      epochs.set(Number(epoch), (epochs.get(Number(epoch)) ?? 0) + 1);
      runs.set(id, epochs);
    }
  }
  return runs;
}

/** Writes reports and outcomes of runs to the store, and emits what it answered. Under push dispatch the owner does this. */

import type { LeaseId } from "../../core/ids.ts";
import { isFinal } from "../../core/jobs/job.ts";
import type { RefusedWrite } from "../../core/leadership/refused-write.ts";
import type { Term } from "../../core/leadership/term.ts";
import type { NodeEvents } from "../../platform/node-events.ts";
import type {
  ClaimedJob,
  JobStore,
  Recorded,
  Report,
  Run,
  RunBatch,
  Settlement,
  Verdict,
} from "../../store/store.ts";
import { statusAfter } from "./result-writer.ts";

export interface RunWriting {
  readonly store: { readonly jobs: Pick<JobStore, "record"> };
  readonly events: NodeEvents;
}

type Verdicts = readonly Verdict[];

export function recordRuns({ store, events }: RunWriting, batch: RunBatch, fence?: Term): Promise<Recorded> {
  const recording = store.jobs.record(batch, fence);
  recording.then(
    (recorded) => emitRecorded(events, batch, recorded),
    (error: unknown) => events.refused("jobs.record", error),
  );
  return recording;
}

export async function settleRuns(
  writing: RunWriting,
  settlements: readonly Settlement[],
  fence?: Term,
): Promise<Verdicts> {
  return (await recordRuns(writing, { reports: [], settlements }, fence)).settled;
}

export async function reportRuns(
  writing: RunWriting,
  reports: readonly Report[],
  fence?: Term,
): Promise<Verdicts> {
  return (await recordRuns(writing, { reports, settlements: [] }, fence)).reported;
}

export function emitRecorded(events: NodeEvents, batch: RunBatch, { reported, settled }: Recorded): void {
  emitReported(events, batch.reports, reported);
  emitSettled(events, batch.settlements, settled);
}

/** One element for those that are alike: batches have thousands. */
function emitSettled(events: NodeEvents, ended: readonly Settlement[], verdicts: Verdicts): void {
  const finished: Finished[] = [];
  for (let at = 0; at < verdicts.length; at++) {
    const { run, outcome } = ended[at]!;
    const verdict = verdicts[at];
    if (verdict === "stale") refuse(events, "run.result", run);
    if (verdict !== "accepted" || !isFinal(statusAfter(outcome))) continue;
    const { queue } = run as Partial<ClaimedJob>;
    const failed = outcome.kind === "failed";
    const last = finished.at(-1);
    if (last && last.queue === queue && last.failed === failed) last.jobs++;
    else finished.push({ queue, failed, jobs: 1 });
  }
  if (finished.length > 0) events.emit("jobs.finished", finished);
}

interface Finished {
  readonly queue: string | undefined;
  readonly failed: boolean;
  jobs: number;
}

function emitReported(events: NodeEvents, reports: readonly Report[], verdicts: Verdicts): void {
  for (let at = 0; at < verdicts.length; at++)
    if (verdicts[at] === "stale") refuse(events, "run.report", reports[at]!.run);
}

export function emitNotRenewed(events: NodeEvents, lease: LeaseId): void {
  events.emit("write.refused", { write: "lease.renew", carried: null, current: null, job: null, id: lease });
}

function refuse(events: NodeEvents, write: RefusedWrite, { id, jobEpoch }: Run): void {
  events.emit("write.refused", { write, carried: jobEpoch, current: null, job: id });
}

/** Writes reports and outcomes of runs to the store, and emits what it answered. Under push dispatch the owner does this. */

import type { LeaseId } from "../../core/ids.ts";
import { isFinal } from "../../core/jobs/job.ts";
import type { RefusedWrite } from "../../core/leadership/refused-write.ts";
import type { Term } from "../../core/leadership/term.ts";
import type { NodeEvents } from "../../platform/node-events.ts";
import type { ClaimedJob, JobStore, Recorded, Run, RunBatch } from "../../store/store.ts";
import { statusAfter } from "./result-writer.ts";

export interface RunWriting {
  readonly store: { readonly jobs: Pick<JobStore, "record"> };
  readonly events: NodeEvents;
}

export function recordRuns({ store, events }: RunWriting, batch: RunBatch, fence?: Term): Promise<Recorded> {
  const recording = store.jobs.record(batch, fence);
  recording.then(
    (recorded) => emitRecorded(events, batch, recorded),
    (error: unknown) => events.refused("jobs.record", error),
  );
  return recording;
}

/** Of the runs that have ended, one element for those that are alike: batches have thousands. */
export function emitRecorded(events: NodeEvents, batch: RunBatch, { reported, settled }: Recorded): void {
  for (let at = 0; at < reported.length; at++)
    if (reported[at] === "stale") refuse(events, "run.report", batch.reports[at]!.run);
  const finished: Finished[] = [];
  for (let at = 0; at < settled.length; at++) {
    const { run, outcome } = batch.settlements[at]!;
    if (settled[at] === "stale") refuse(events, "run.result", run);
    if (settled[at] !== "accepted" || !isFinal(statusAfter(outcome))) continue;
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

export function emitNotRenewed(events: NodeEvents, lease: LeaseId): void {
  events.emit("write.refused", { write: "lease.renew", carried: null, current: null, job: null, id: lease });
}

function refuse(events: NodeEvents, write: RefusedWrite, { id, jobEpoch }: Run): void {
  events.emit("write.refused", { write, carried: jobEpoch, current: null, job: id });
}

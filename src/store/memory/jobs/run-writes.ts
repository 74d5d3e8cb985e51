/** How a run starts, reports and ends: the same for claimed and for dispatched jobs. */

import type { LeaseId } from "../../../core/ids.ts";
import type { Job } from "../../../core/jobs/job.ts";
import type { Term } from "../../../core/leadership/term.ts";
import type { AssignmentId } from "../../ownership.ts";
import type { Author, ClaimedJob, Report, Run, Settlement, Verdict } from "../../store.ts";
import { keepRun, shown, type Entry, type StoreCache } from "./store-cache.ts";
import type { Leases } from "./leases.ts";
import { afterRun, afterStart, appendLogs, asClaimed, verdictOn } from "./run-endings.ts";

export interface Claimant {
  readonly author: Author;
  readonly worker: string;
  readonly lease: LeaseId;
}

/** With an assignment, only a run that is in it is written about; of a term, which was compared, the epoch is noted. */
export interface WrittenUnder {
  readonly assignment?: AssignmentId;
  readonly fence?: Term;
}

/** Each in the turn of its caller. */
export class RunWrites {
  readonly #ledger: StoreCache;
  readonly #leases: Leases;

  constructor(options: { readonly ledger: StoreCache; readonly leases: Leases }) {
    this.#ledger = options.ledger;
    this.#leases = options.leases;
  }

  /** Under a lease that is held. */
  start(entry: Entry, claimant: Claimant, now: number): ClaimedJob {
    this.#ledger.change(entry, afterStart(entry.job, claimant, now), now);
    entry.lease = claimant.lease;
    this.#leases.take(claimant.lease, entry);
    const { job } = entry;
    return { ...asClaimed(job), lease: claimant.lease, leaderEpoch: job.leaderEpoch };
  }

  settle({ run, outcome }: Settlement, now: number, { assignment, fence }: WrittenUnder): Verdict {
    const entry = this.#ledger.find(run.id);
    const verdict = verdictIn(assignment, entry, run);
    if (verdict !== "accepted") return verdict;
    this.#leases.give(run.lease, entry!);
    const change = { ...afterRun(entry!, outcome, now), ...epochOf(fence) };
    // Whoever owned it when it ended, and wrote that down, is shown from now on.
    const { owner, ownerEpoch } = shown(entry!);
    if (change.finishedAt === undefined) {
      if (outcome.kind === "retry") keepRun(entry!, "failed", now, outcome.error);
      else if (outcome.kind === "interrupted") keepRun(entry!, "interrupted", now, null);
    }
    const last = assignment !== undefined && change.finishedAt !== undefined ? { owner, ownerEpoch } : {};
    this.#ledger.change(entry!, { ...change, ...last }, now);
    if (outcome.kind === "completed") entry!.result = outcome.result;
    return verdict;
  }

  report({ run, logs, progress }: Report, now: number, { assignment, fence }: WrittenUnder): Verdict {
    const entry = this.#ledger.find(run.id);
    const verdict = verdictIn(assignment, entry, run);
    // A run that has ended writes no more: "replayed" is for results only.
    if (verdict !== "accepted") return verdict === "replayed" ? "stale" : verdict;
    appendLogs(entry!.logs, logs, run.jobEpoch, now);
    const change = progress ? { progress: progress.value, progressMessage: progress.message } : {};
    this.#ledger.change(entry!, { ...change, ...epochOf(fence) }, now);
    return verdict;
  }
}

function epochOf(fence: Term | undefined): Partial<Job> {
  return fence ? { leaderEpoch: fence.epoch } : {};
}

export function copiedSettlement({ run, outcome }: Settlement): Settlement {
  return { run: { ...run }, outcome: { ...outcome } };
}

export function copiedReport({ run, logs, progress }: Report): Report {
  return { run: { ...run }, logs: logs.map((line) => ({ ...line })), progress: progress && { ...progress } };
}

function verdictIn(assignment: AssignmentId | undefined, entry: Entry | undefined, run: Run): Verdict {
  const verdict = verdictOn(entry, run);
  const elsewhere = assignment !== undefined && entry?.assignment?.id !== assignment;
  return verdict === "accepted" && elsewhere ? "stale" : verdict;
}

/** How a worker gets jobs, keeps its leases and delivers results: the store, its substitute under push dispatch, or a leader's HTTP API. */

import type { JobId, LeaseId } from "../../core/ids.ts";
import type { Claimed, ClaimRequest, Recorded, Run, RunBatch, SlotStore } from "../../store/store.ts";
import { recordRuns } from "./run-writes.ts";
import { WorkerLease, type LeasePlatform, type WorkerLeaseOptions } from "./worker-lease.ts";

export interface WorkerPorts {
  readonly claims: ClaimPort;
  readonly results: ResultPort;
  readonly lease: (listener: LeaseListener) => LeasePort;
}

/** A claim of a worker, with its load: a store needs only the request. */
export interface WorkerClaim extends ClaimRequest {
  readonly running: number;
  /** Jobs that ended in about a tenth of a second. */
  readonly pace: number;
}

export interface ClaimPort {
  claim(request: WorkerClaim): Promise<Claimed>;
  /** Left out where nothing is put into slots. */
  readonly slots?: SlotStore;
  /** No more claims will be made: whatever is held for them goes to others. */
  close?(): Promise<void>;
  open?(): void;
}

export interface ResultPort {
  /** Reports first, then outcomes. What fails may be sent again: each run is known by its epoch. */
  record(batch: RunBatch): Promise<Recorded>;
  /** How long one write holds up the next; left out when until its end, as for a store that is one thing and not many. */
  readonly patienceMs?: number;
  /** The worker is about to stop, and waits for answers. */
  hurry?(): void;
  /** Nothing more will be written about this run: its lease is lost. */
  forget?(run: Run): void;
}

/** Keeps what was claimed from others for as long as it is needed. */
export type LeasePort = Pick<
  WorkerLease,
  "id" | "opens" | "holds" | "granted" | "refused" | "retire" | "start" | "stop"
>;

export interface LeaseListener {
  /** Whether there is anything under this lease. */
  readonly needed: (lease: LeaseId) => boolean;
  readonly onLost: (lease: LeaseId, why: string) => void;
  readonly onCancelRequest: (id: JobId, reason: string | null) => void;
}

export function storePorts(
  platform: LeasePlatform,
  options: Omit<WorkerLeaseOptions, keyof LeaseListener>,
): WorkerPorts {
  const { store } = options;
  return {
    claims: {
      claim: (request) => store.jobs.claim(request),
      ...(store.jobs.slots && { slots: store.jobs.slots }),
    },
    results: { record: (batch) => recordRuns({ store, events: platform.events }, batch) },
    lease: (listener) => new WorkerLease(platform, { ...options, ...listener }),
  };
}

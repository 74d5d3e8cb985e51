/**
 * The messages between the agent's main thread, where handlers run, and the thread of its link to the controllers. Only
 * plain values, because they are copied between threads.
 *
 *   link                                     main
 *     | <------------- claim ----------------- |   there are so many free slots
 *     | -------------- offer ----------------> |   a batch under one lease; none once the link drains
 *     | <------------- report ---------------- |   logs and progress, again and again
 *     | <------- result or forget ------------ |   once for each job
 *     | ---------- cancel or lost -----------> |   at any time
 *     | <------------- drain ----------------- |   no more leases
 *     | <-- finish ---------------- finished -> |   everything is delivered, or was dropped
 */

import type { ClusterConnection } from "../client/connection/cluster-connection.ts";
import type { ResultErrorBody, ResultStatus } from "../client/controller-calls.ts";
import type { JobId, LeaseId } from "../core/ids.ts";
import type { Platform } from "../platform/platform.ts";
import type { ClaimedJob, Report, Run } from "../store/store.ts";

/** How a run ended, as it is posted; `result` is JSON text. */
export interface Ended {
  readonly status: ResultStatus;
  readonly result?: string;
  readonly error?: ResultErrorBody;
}

export type ToLink =
  | { readonly say: "claim"; readonly limit: number }
  | { readonly say: "report"; readonly run: Run; readonly report: Omit<Report, "run"> }
  | { readonly say: "result"; readonly run: Run; readonly ended: Ended }
  /** Nothing will be said of this run any more: its lease is lost. */
  | { readonly say: "forget"; readonly run: Run }
  | { readonly say: "drain" }
  | { readonly say: "finish"; readonly withinMs: number };

export type FromLink =
  | { readonly say: "offer"; readonly jobs: readonly ClaimedJob[]; readonly claim: SharedArrayBuffer }
  | { readonly say: "cancel"; readonly id: JobId; readonly reason: string | null }
  | { readonly say: "lost"; readonly lease: LeaseId; readonly why: string }
  | { readonly say: "finished"; readonly undelivered: number };

export interface LinkPort {
  send(message: ToLink): void;
  close(): Promise<void>;
}

export type OpenLink = (listener: {
  readonly hear: (message: FromLink) => void;
  /** It is gone, and with it the knowledge of what was leased. */
  readonly onDied: (error: unknown) => void;
}) => LinkPort;

/** Of an offer: whoever is first decides it. The main thread takes the jobs, or the link takes them back. */
export function newClaim(): SharedArrayBuffer {
  return new SharedArrayBuffer(4);
}

/** False when the other side was first. */
export function decide(claim: SharedArrayBuffer): boolean {
  return Atomics.compareExchange(new Int32Array(claim), 0, 0, 1) === 0;
}

export interface LinkContext {
  readonly platform: Pick<Platform, "clock" | "random" | "log">;
  readonly leader: ClusterConnection;
  readonly agent: string;
}

/** The options of the client. */

import type { JobBody } from "../api/bodies/job-body.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import type { BatonClientError } from "./client-error.ts";
import type { Connection } from "./connection/connection.ts";

export interface BatonClientOptions {
  /** Some nodes, also as one text with commas; one that is up is enough. `BATON_URL`, or this machine, unless told otherwise. */
  readonly urls?: string | readonly string[];
  readonly url?: string;
  /** Sent as `Authorization: Bearer`; `BATON_TOKEN` unless told otherwise. */
  readonly token?: string;
  /** For each call, over all its tries, until the last byte of its answer. */
  readonly timeoutMs?: number;
  /** False: only the given nodes are used, also when they tell of others. */
  readonly discover?: boolean;
  /** False: each call is tried once, at the first node, and what became of it is told at once. */
  readonly retry?: boolean;
  readonly clock?: Clock;
  readonly random?: Random;
  /** How a node is reached; over HTTP unless told otherwise. */
  readonly connect?: (url: string) => Connection;
}

/** Of every stream that is resumed after a broken connection. */
export interface StreamOptions {
  readonly signal?: AbortSignal;
  readonly giveUpAfterMs?: number;
  /** The stream broke and is tried again; once for each reason. */
  readonly onTrouble?: (error: BatonClientError) => void;
}

export interface FollowLogsOptions extends StreamOptions {
  /** Only lines behind this sequence number. */
  readonly after?: number;
}

export interface PageOfLogsOptions {
  /** Only lines behind this sequence number. */
  readonly after?: number;
  readonly limit?: number;
  readonly follow?: false;
}

export interface WatchEventsOptions extends StreamOptions {
  /** Goes on behind the event with this id; what happens from now on unless told otherwise. */
  readonly after?: string;
}

export interface WaitOptions {
  /** For as long as it takes unless told otherwise. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** `result` is null unless the job is completed. */
export interface Finished {
  readonly job: JobBody;
  readonly result: unknown;
}

export interface CallOptions {
  /** How long to wait for the result; the client's own time-out unless told otherwise. */
  readonly timeoutMs?: number;
}

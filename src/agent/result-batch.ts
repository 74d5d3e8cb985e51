/**
 * Results as they are posted: their encoding, the size of a batch, and the handling of a result that is not acceptable.
 */

import type { ResultAnswerBody } from "../client/controller-calls.ts";
import type { Ended, RunKey } from "./link-messages.ts";

export interface Posting {
  readonly run: RunKey;
  readonly ended: Ended;
}

/** Half of what a node takes by default (`http.body_limit`), so that only a result that is too large by itself is refused. */
const PARCEL_LENGTH_MAX = 512 * 1_024;
/** The names around a result, and its ids. */
const ENVELOPE_LENGTH = 512;

/** In order, each small enough for one body; a result that is too large for any goes alone. */
export function resultBatches(postings: readonly Posting[]): Posting[][] {
  const all: Posting[][] = [];
  let length = Infinity;
  for (const posting of postings) {
    const own = ENVELOPE_LENGTH + lengthOf(posting.ended);
    if (length + own > PARCEL_LENGTH_MAX) {
      all.push([]);
      length = 0;
    }
    all.at(-1)!.push(posting);
    length += own;
  }
  return all;
}

function lengthOf({ result, error }: Ended): number {
  return (result?.length ?? 0) + (error ? error.message.length + (error.stack?.length ?? 0) : 0);
}

/** The result of a run is JSON already, and only put in its place. */
export function resultText({ run, ended }: Posting, agent: string, leaderEpoch: number): string {
  const head = JSON.stringify({
    agent,
    lease_id: run.lease,
    job_id: run.id,
    job_epoch: run.jobEpoch,
    leader_epoch: leaderEpoch,
    status: ended.status,
    error: ended.error,
  });
  return ended.result === undefined ? head : `${head.slice(0, -1)},"result":${ended.result}}`;
}

/** A result that no leader will ever accept is reported as a failure of its job, once. Null when there is nothing to report. */
export function afterRefusal(posting: Posting, status: number, answer: ResultAnswerBody): Posting | null {
  if (posting.ended.status !== "succeeded" || (status !== 200 && (status < 400 || status === 404)))
    return null;
  const why = answer.message ?? answer.error ?? `status ${status}`;
  const error = { code: "BAD_RESULT", message: `the result was refused: ${why}`, retryable: false };
  return { run: posting.run, ended: { status: "failed", error } };
}

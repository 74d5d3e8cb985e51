/**
 * Sends the output of runs to the leader: logs and progress, and the outcome of each run. A result is posted until it
 * is accepted or refused, also across changes of the leader; results that are ready together are posted together.
 *
 * A leader accepts results only with its own epoch. After a change of the leader the lease is renewed first, which
 * returns the new epoch. STALE_EPOCH means that either the leader changed or the job moved on. A renewal distinguishes
 * the two: if it returns the same epoch, the job has moved on and its result is dropped.
 *
 * Log lines whose answer was lost are posted again, so a line may appear twice; no line is dropped because of a broken
 * connection.
 */

import type { ResultAnswerBody } from "../client/controller-calls.ts";
import { ERRORS, type ErrorCode } from "../core/errors.ts";
import { Batcher } from "../platform/batcher.ts";
import { split, within, type Backoff } from "../platform/loop.ts";
import type { Report, Run } from "../store/store.ts";
import type { LeaseRenewer } from "./lease-renewer.ts";
import type { Ended, LinkContext } from "./link-messages.ts";
import { ReportSender } from "./report-sender.ts";

/** Results of one array. A leader settles them in one commit. */
const BATCH_MAX = 64;
/** What one node may take to store a batch. Shorter, and a leader whose database is slow looks dead. */
const CALL_TIMEOUT_MS = 10_000;

export class ResultSender {
  readonly #link: LinkContext;
  readonly #leases: LeaseRenewer;
  readonly #onRecovered: () => void;
  readonly #reports: ReportSender;
  readonly #batcher: Batcher<Posting, null>;
  readonly #backoff: Backoff;
  readonly #over = new AbortController();
  readonly #deliveries = new Set<Promise<void>>();
  #dropped = 0;

  constructor(link: LinkContext, leases: LeaseRenewer, onRecovered: () => void) {
    this.#link = link;
    this.#leases = leases;
    this.#onRecovered = onRecovered;
    this.#backoff = link.leader.backoff();
    this.#reports = new ReportSender(link, leases, this.#over.signal);
    this.#batcher = new Batcher({
      clock: link.platform.clock,
      flush: (postings) => this.#deliver(postings),
      batchMax: BATCH_MAX,
    });
  }

  get failing(): boolean {
    return this.#backoff.failures > 0;
  }

  report(run: Run, report: Omit<Report, "run">): void {
    this.#reports.add(run, report);
  }

  result(run: Run, ended: Ended): void {
    const delivery = this.#bring(run, ended).finally(() => this.#deliveries.delete(delivery));
    this.#deliveries.add(delivery);
  }

  forget(run: Run): void {
    this.#reports.forget(run);
    this.#leases.settled(run);
  }

  /** Waits until all is delivered, for so long at most; answers how many results were dropped. Asked again, it may be sooner. */
  async finish(withinMs: number): Promise<number> {
    const all = async (): Promise<void> => {
      while (this.#deliveries.size > 0) await Promise.all(this.#deliveries);
    };
    await within(this.#link.platform.clock, withinMs, all());
    if (!this.#over.signal.aborted) this.#dropped = this.#deliveries.size;
    this.#over.abort();
    return this.#dropped;
  }

  /** Lines before the result: after it, they would be those of a run that is over. */
  async #bring(run: Run, ended: Ended): Promise<void> {
    await this.#reports.empty(run);
    await this.#batcher.add({ run, ended });
    this.#leases.settled(run);
  }

  async #deliver(postings: readonly Posting[]): Promise<readonly null[]> {
    const { clock, log } = this.#link.platform;
    let left = [...postings];
    while (left.length > 0 && !this.#over.signal.aborted) {
      try {
        await this.#leases.renewOld(new Set(left.map(({ run }) => run.lease)));
        left = await this.#postEach(resultBatches(left));
        if (this.failing) {
          this.#backoff.reset();
          this.#onRecovered();
        }
      } catch (error) {
        if (this.#over.signal.aborted) break;
        if (!this.failing)
          log.warn({ err: error, results: left.length }, "could not post results; trying again");
        await clock.sleep(this.#backoff.next(), this.#over.signal);
      }
    }
    return postings.map(() => null);
  }

  async #postEach(batches: readonly (readonly Posting[])[]): Promise<Posting[]> {
    const again: Posting[] = [];
    for (const batch of batches) again.push(...(await this.#post(batch)));
    return again;
  }

  /** Answers what must be posted again. */
  async #post(postings: readonly Posting[]): Promise<readonly Posting[]> {
    const epochs = postings.map(({ run }) => this.#leases.get(run.lease)?.epoch ?? 0);
    const texts = postings.map((posting, at) => resultText(posting, this.#link.agent, epochs[at]!));
    const body = (): string => `[${texts.join(",")}]`;
    // A leader that stands still would hold it for all of that; to post it twice does no harm.
    const options = { timeoutMs: CALL_TIMEOUT_MS, signal: this.#over.signal, moves: true };
    const { status, json } = await this.#link.leader.postToLeader("/v1/results", body, options);
    // Something in there is not acceptable; alone, each has its own answer.
    if (status !== 200 && postings.length > 1) return this.#postEach(postings.map((posting) => [posting]));
    const answers = status === 200 && Array.isArray(json) ? (json as ResultAnswerBody[]) : [];
    const whole = (json ?? {}) as ResultAnswerBody;
    const again = postings.map(async (posting, at) => {
      const answer = answers[at] ?? whole;
      return answer.accepted ? null : this.#refused(posting, epochs[at]!, status, answer);
    });
    return (await Promise.all(again)).filter((posting) => posting !== null);
  }

  /** The posting to try again; null when it is dropped. */
  async #refused(posting: Posting, epoch: number, status: number, answer: ResultAnswerBody) {
    const { log } = this.#link.platform;
    const { lease: id, id: jobId, jobEpoch } = posting.run;
    if (answer.error === "STALE_EPOCH" || answer.error === "STALE_LEASE") {
      if (await this.#leases.hasNewEpoch(id, epoch)) return posting;
      log.warn({ jobId, jobEpoch }, "a result was refused: the job has moved on (STALE_EPOCH)");
      return null;
    }
    if (isPassing(answer.error)) throw new Error(`the result of ${jobId} was not taken: ${answer.error}`);
    const next = afterRefusal(posting, status, answer);
    const fields = { jobId, jobEpoch, status, error: answer.error, message: answer.message };
    const what = next ? "; its job is told to have failed" : " and is dropped";
    log.error(fields, `a result was refused${what}`);
    return next;
  }
}

/** Refused for a reason that lies with the leader and not with the result. */
function isPassing(code: string | undefined): boolean {
  return code !== undefined && Object.hasOwn(ERRORS, code) && ERRORS[code as ErrorCode].retryable;
}

export interface Posting {
  readonly run: Run;
  readonly ended: Ended;
}

/** Half of what a node takes by default (`http.body_limit`), so that only a result that is too large by itself is refused. */
const PARCEL_LENGTH_MAX = 512 * 1_024;
const ENVELOPE_LENGTH = 512;

/** In order, each small enough for one body; a result that is too large for any goes alone. */
export function resultBatches(postings: readonly Posting[]): Posting[][] {
  const weigh = ({ ended }: Posting): number => ENVELOPE_LENGTH + lengthOf(ended);
  return split(postings, Infinity, weigh, PARCEL_LENGTH_MAX);
}

function lengthOf({ result, error }: Ended): number {
  return (result?.length ?? 0) + (error?.message.length ?? 0) + (error?.stack?.length ?? 0);
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

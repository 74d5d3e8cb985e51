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

import type { LeaderConnection } from "../client/connection/leader-connection.ts";
import type { ResultAnswerBody } from "../client/controller-calls.ts";
import { ERRORS, type ErrorCode } from "../core/errors.ts";
import { Batcher } from "../platform/batcher.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import type { Report } from "../store/store.ts";
import { BackOff } from "./back-off.ts";
import type { LeaseRenewer } from "./lease-renewer.ts";
import type { Ended, RunKey } from "./controller-link-messages.ts";
import { ReportSender } from "./report-sender.ts";
import { afterRefusal, resultBatches, resultText, type Posting } from "./result-batch.ts";

export interface ResultSenderOptions {
  readonly agent: string;
  readonly leader: LeaderConnection;
  readonly leases: LeaseRenewer;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Results get through again. */
  readonly onRecovered: () => void;
}

/** Results of one array. A leader settles them in one commit. */
const BATCH_MAX = 64;
/** What one node may take to store a batch. Shorter, and a leader whose database is slow looks dead. */
const CALL_TIMEOUT_MS = 10_000;

export class ResultSender {
  readonly #o: ResultSenderOptions;
  readonly #reports: ReportSender;
  readonly #batcher: Batcher<Posting, null>;
  readonly #backOff: BackOff;
  readonly #over = new AbortController();
  readonly #deliveries = new Set<Promise<void>>();
  #letGo = 0;

  constructor(options: ResultSenderOptions) {
    this.#o = options;
    this.#backOff = new BackOff(options);
    this.#reports = new ReportSender({ ...options, over: this.#over.signal });
    this.#batcher = new Batcher({ flush: (postings) => this.#deliver(postings), batchMax: BATCH_MAX });
  }

  /** Results do not get through at the moment. */
  get failing(): boolean {
    return this.#backOff.failures > 0;
  }

  report(run: RunKey, report: Omit<Report, "run">): void {
    this.#reports.add(run, report);
  }

  result(run: RunKey, ended: Ended): void {
    const delivery = this.#bring(run, ended).finally(() => this.#deliveries.delete(delivery));
    this.#deliveries.add(delivery);
  }

  forget(run: RunKey): void {
    this.#reports.forget(run);
    this.#o.leases.settled(run);
  }

  /** Waits until all is delivered, for so long at most; answers how many results were let go. Asked again, it may be sooner. */
  async finish(withinMs: number): Promise<number> {
    const { clock } = this.#o;
    const over = new AbortController();
    const late = clock.sleep(withinMs, over.signal);
    const all = async (): Promise<void> => {
      while (this.#deliveries.size > 0) await Promise.all(this.#deliveries);
    };
    await Promise.race([all(), late]);
    over.abort();
    if (!this.#over.signal.aborted) this.#letGo = this.#deliveries.size;
    this.#over.abort();
    return this.#letGo;
  }

  /** Lines before the result: after it, they would be those of a run that is over. */
  async #bring(run: RunKey, ended: Ended): Promise<void> {
    await this.#reports.empty(run);
    await this.#batcher.add({ run, ended });
    this.#o.leases.settled(run);
  }

  async #deliver(postings: readonly Posting[]): Promise<readonly null[]> {
    let left = [...postings];
    while (left.length > 0 && !this.#over.signal.aborted) {
      try {
        await this.#renewOld(left);
        const again: Posting[] = [];
        for (const batch of resultBatches(left)) again.push(...(await this.#post(batch)));
        left = again;
        this.#recovered();
      } catch (error) {
        if (this.#over.signal.aborted) break;
        if (!this.failing)
          this.#o.log.warn({ err: error, results: left.length }, "could not post results; trying again");
        await this.#backOff.failed(this.#over.signal);
      }
    }
    return postings.map(() => null);
  }

  #recovered(): void {
    if (!this.failing) return;
    this.#backOff.succeeded();
    this.#o.onRecovered();
  }

  /** Under a leader that is newer than they are. One that nobody renews now is found out when its result is refused. */
  async #renewOld(postings: readonly Posting[]): Promise<void> {
    const { leases, leader } = this.#o;
    const ids = new Set(postings.map(({ run }) => run.lease));
    const old = [...ids].filter((id) => (leases.get(id)?.epoch ?? Infinity) < leader.epoch);
    await Promise.all(old.map((id) => leases.renew(id)));
  }

  /** Answers what must be posted again. */
  async #post(postings: readonly Posting[]): Promise<readonly Posting[]> {
    const { leader, leases, agent } = this.#o;
    const epochs = postings.map(({ run }) => leases.get(run.lease)?.epoch ?? 0);
    const { status, body } = await leader.call({
      method: "POST",
      path: "/v1/results",
      body: `[${postings.map((posting, at) => resultText(posting, agent, epochs[at]!)).join(",")}]`,
      timeoutMs: CALL_TIMEOUT_MS,
      signal: this.#over.signal,
      // A leader that stands still would hold it for all of that; to post it twice does no harm.
      moves: true,
    });
    if (status !== 200 && postings.length > 1) {
      // Something in there is not acceptable; alone, each has its own answer.
      const again: Posting[] = [];
      for (const posting of postings) again.push(...(await this.#post([posting])));
      return again;
    }
    const answers = status === 200 && Array.isArray(body) ? (body as ResultAnswerBody[]) : [];
    const whole = (body ?? {}) as ResultAnswerBody;
    const again = postings.map(async (posting, at) => {
      const answer = answers[at] ?? whole;
      return answer.accepted ? null : this.#refused(posting, epochs[at]!, status, answer);
    });
    return (await Promise.all(again)).filter((posting) => posting !== null);
  }

  /** The posting to try again; null when it is dropped. */
  async #refused(
    posting: Posting,
    epoch: number,
    status: number,
    answer: ResultAnswerBody,
  ): Promise<Posting | null> {
    const { leases, log } = this.#o;
    const { lease: id, id: jobId, jobEpoch } = posting.run;
    if (answer.error === "STALE_EPOCH" || answer.error === "STALE_LEASE") {
      const lease = leases.get(id);
      if (lease && lease.epoch === epoch) await leases.renew(id);
      if (lease && !lease.over && lease.epoch !== epoch) return posting;
      log.warn({ jobId, jobEpoch }, "a result was refused: the job has moved on (STALE_EPOCH)");
      return null;
    }
    if (isPassing(answer.error)) throw new Error(`the result of ${jobId} was not taken: ${answer.error}`);
    const next = afterRefusal(posting, status, answer);
    const fields = { jobId, jobEpoch, status, error: answer.error, message: answer.message };
    if (next) log.error(fields, "a result was refused; its job is told to have failed");
    else log.error(fields, "a result was refused and is dropped");
    return next;
  }
}

/** Refused for a reason that lies with the leader and not with the result. */
function isPassing(code: string | undefined): boolean {
  return code !== undefined && Object.hasOwn(ERRORS, code) && ERRORS[code as ErrorCode].retryable;
}

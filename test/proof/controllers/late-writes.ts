/**
 * Says again and again what should not count any more: results, logs and renewals of runs that are over or of terms that are, taken from
 * the history of this very cluster. Each is answered with STALE_EPOCH or NOT_LEADER, or, if it is the last word on its job, as
 * it was at first; whatever was in it is found nowhere afterwards.
 */

import { leaseholder } from "../../../src/core/agent.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import type { Claim, Witness } from "./witness.ts";

/** In everything that must not be stored; looked for at the end. */
export const LATE = "said too late";

export interface LateWritesOptions {
  readonly witness: Witness;
  readonly urls: readonly string[];
  readonly chance: () => number;
  readonly onBroken: (error: Error) => void;
}

interface Write {
  readonly what: string;
  readonly path: string;
  readonly body: object;
  /** What a leader may answer beside STALE_EPOCH: the status that the job has had for long. */
  readonly replay?: string;
}

const PAUSE_MS = 700;
const FOLLOW_MS = 250;
const DEADLINE_MS = 4_000;
/** A process that stands still reads what was sent when it goes on. */
const STILL_DEADLINE_MS = 30_000;
const EACH = 3;
const HELD_MAX = 10;
const STATUS: Readonly<Record<number, string>> = { 3: "completed", 4: "failed", 5: "cancelled" };

export class LateWrites {
  readonly answers = { stale: 0, notLeader: 0, replayed: 0, none: 0 };
  /** Sent to leaders that stood still while another took over, and answered by them when they went on. */
  woken = 0;
  /** Of runs whose job was taken from them and is open still. */
  overtaken = 0;
  readonly #o: LateWritesOptions;
  readonly #over = new AbortController();
  #loops: readonly Promise<void>[] = [];

  constructor(options: LateWritesOptions) {
    this.#o = options;
  }

  start(): void {
    const failed = (error: unknown): void => {
      if (!this.#over.signal.aborted) this.#o.onBroken(error as Error);
    };
    this.#loops = [this.#run().catch(failed), this.#follow().catch(failed)];
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#loops);
  }

  /** What a leader has leased; asked when it has just been stopped. */
  held(): Promise<readonly Claim[]> {
    return this.#o.witness.running(HELD_MAX);
  }

  /**
   * Results and logs of what it held, to a leader that stands still and has a successor: under its own epoch, which is over. To be called
   * before it goes on, and what comes back when it has.
   */
  async toStopped(url: string, epoch: number, held: readonly Claim[]): Promise<() => Promise<void>> {
    if ((await this.#o.witness.epoch()) <= epoch) return async () => {};
    const what = "to a leader that stood still";
    const writes = held.flatMap((claim) => [result(what, claim, epoch), logs(what, claim, epoch)]);
    const sending = writes.map((write) => this.#send(url, write, STILL_DEADLINE_MS));
    return async () => {
      this.woken += (await Promise.all(sending)).filter(Boolean).length;
    };
  }

  async #run(): Promise<void> {
    const { urls, chance } = this.#o;
    while (!this.#over.signal.aborted) {
      for (const write of await this.#some()) {
        // The leader has to be asked too, and nobody knows who it is by now.
        for (const url of urls) await this.#send(url, write, DEADLINE_MS);
      }
      await systemClock.sleep(2 * PAUSE_MS * chance(), this.#over.signal);
    }
  }

  /** Jobs that were taken from somebody are open for a second or two only. */
  async #follow(): Promise<void> {
    const { urls, witness } = this.#o;
    while (!this.#over.signal.aborted) {
      const [epoch, overtaken] = [await witness.epoch(), await witness.overtaken(EACH)];
      const what = "of a run that was overtaken";
      const writes = overtaken.flatMap((claim) => [result(what, claim, epoch), logs(what, claim, epoch)]);
      this.overtaken += writes.length;
      await Promise.all(urls.flatMap((url) => writes.map((write) => this.#send(url, write, DEADLINE_MS))));
      await systemClock.sleep(FOLLOW_MS, this.#over.signal);
    }
  }

  async #some(): Promise<Write[]> {
    const { witness, chance } = this.#o;
    const epoch = await witness.epoch();
    const [superseded, accepted, running] = [
      await witness.superseded(EACH),
      await witness.accepted(EACH),
      await witness.running(EACH),
    ];
    const writes: Write[] = [];
    for (const claim of superseded) {
      const what = "of a run that was superseded";
      writes.push(
        result(what, claim, claim.leaderEpoch),
        result(what, claim, epoch),
        logs(what, claim, epoch),
      );
      writes.push(
        result(`${what}, with the next epoch`, { ...claim, jobEpoch: claim.jobEpoch + 1 }, epoch - 1),
      );
      if (!(await witness.leaseExists(claim.lease))) writes.push(renewal(what, claim));
    }
    for (const claim of accepted) {
      const what = "of a run that was accepted";
      const replay = STATUS[claim.status]!;
      writes.push({ ...result(what, claim, epoch), replay }, result(what, claim, epoch - 1));
      writes.push(logs(what, claim, epoch));
    }
    // The run is the right one, and only the term is not.
    for (const claim of running) {
      const what = "running, under an earlier term";
      writes.push(result(what, claim, epoch - 1), logs(what, claim, epoch - 1));
    }
    return writes.filter(() => chance() < 0.5);
  }

  /** Whether there was an answer. */
  async #send(url: string, write: Write, deadlineMs: number): Promise<boolean> {
    const { what, path, body, replay } = write;
    let status: number;
    let told: { error?: string; status?: string; accepted?: boolean };
    try {
      const answer = await fetch(url + path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(deadlineMs),
      });
      [status, told] = [answer.status, (await answer.json()) as typeof told];
    } catch {
      this.answers.none++;
      return false;
    }
    if (status >= 500 || status === 429) this.answers.none++;
    else if (status === 409 && told.error === "NOT_LEADER") this.answers.notLeader++;
    else if (status === 409 && told.error === "STALE_EPOCH") this.answers.stale++;
    else if (replay !== undefined && status === 200 && told.status === replay) this.answers.replayed++;
    else
      this.#o.onBroken(
        new Error(`${path} ${what}: ${status} ${JSON.stringify(told)} to ${JSON.stringify(body)} at ${url}`),
      );
    return status < 500;
  }
}

function result(what: string, claim: Claim, leaderEpoch: number): Write {
  const body = { ...named(claim, leaderEpoch), status: "succeeded", result: { [LATE]: true } };
  return { what, path: "/v1/results", body };
}

function logs(what: string, claim: Claim, leaderEpoch: number): Write {
  return { what, path: "/v1/logs", body: { ...named(claim, leaderEpoch), lines: [{ message: LATE }] } };
}

function renewal(what: string, { lease }: Claim): Write {
  return { what, path: "/v1/leases/renew", body: { agent: leaseholder(lease)!, lease_id: lease } };
}

function named({ job, jobEpoch, lease }: Claim, leaderEpoch: number): object {
  return { lease_id: lease, job_id: job, job_epoch: jobEpoch, leader_epoch: leaderEpoch };
}

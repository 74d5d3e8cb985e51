/**
 * The receiving side of retractions: jobs on this node that another node has placed elsewhere, because it got no answer
 * from us.
 */

import type { Jobs } from "../../jobs/job-service.ts";
import { jobId, uuidAt, type JobId, type NodeName } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";

export type RetractedJobs = Pick<RetractionReceiver, "has" | "confirm" | "takeBack">;

export interface RetractionReceiverOptions {
  readonly node: NodeName;
  readonly jobs: Pick<Jobs, "cancel" | "remove">;
  readonly clock: Clock;
  readonly log: Log;
}

/** A request that is still on its way comes within this time, or not at all: connections do not outlive it. */
const REMEMBERED_MS = 600_000;

/**
 * What was taken back is remembered, in memory: the request that would store it may still be on its way, in a buffer of a
 * connection that ends with this process.
 */
export class RetractionReceiver {
  readonly #o: RetractionReceiverOptions;
  readonly #takenBack: Recent<string>;
  readonly #confirmed: Recent<JobId>;

  constructor(options: RetractionReceiverOptions) {
    this.#o = options;
    this.#takenBack = new Recent(options.clock, REMEMBERED_MS);
    this.#confirmed = new Recent(options.clock, REMEMBERED_MS);
  }

  /** Whether the batch with this first uuid was taken back already, so that it must not be stored any more. */
  has(first: string): boolean {
    return this.#takenBack.has(first);
  }

  /** Another request with the same key was answered with this job: it is not to be taken back any more. */
  confirm(id: JobId): void {
    this.#confirmed.add(id);
  }

  /**
   * `running`: their cancellation was asked for; ask again. `kept`: a job was promised to another caller under the same key, so that
   * there are two now. One that has run to its end is removed all the same: no caller has its id, and the other job is the one that counts.
   */
  async takeBack(first: string, jobs: number): Promise<"gone" | "running" | "kept"> {
    this.#takenBack.add(first);
    const answers = new Set<"gone" | "running" | "kept">();
    for (let index = 0; index < jobs; index++) {
      answers.add(await this.#remove(jobId(this.#o.node, uuidAt(first, index))));
    }
    if (answers.has("running")) return "running";
    return answers.has("kept") ? "kept" : "gone";
  }

  async #remove(id: JobId): Promise<"gone" | "running" | "kept"> {
    const { jobs, log } = this.#o;
    if (this.#confirmed.has(id)) return "kept";
    const { outcome, ...rest } = await jobs.cancel(
      id,
      "it was placed on another node, because this one did not answer",
    );
    if (outcome === "missing") return "gone";
    if (outcome === "requested") return "running";
    if (outcome === "finished" && "status" in rest && rest.status !== "cancelled") {
      log.warn(
        { jobId: id, status: rest.status },
        "a job that was also placed on another node has run here too",
      );
    }
    return (await jobs.remove(id)) === "running" ? "running" : "gone";
  }
}

/** Remembers for a while, in two generations: no timer and no list to search. */
class Recent<Item> {
  readonly #clock: Clock;
  readonly #ms: number;
  #since: number;
  #now = new Set<Item>();
  #before = new Set<Item>();

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
    this.#since = clock.monotonic();
  }

  add(item: Item): void {
    const at = this.#clock.monotonic();
    if (at - this.#since >= this.#ms) {
      this.#before = this.#now;
      this.#now = new Set();
      this.#since = at;
    }
    this.#now.add(item);
  }

  has(item: Item): boolean {
    return this.#now.has(item) || this.#before.has(item);
  }
}

import type { NodeIdentity } from "../core/node.ts";
import { chooseSizes, jobsToGive } from "../core/rebalance.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import type { JobHandoffPublisher } from "./job-handoff-publisher.ts";
import type { JobHandoffSubscriber } from "./job-handoff-subscriber.ts";
import type { CoordinatorHealthMonitor } from "./coordinator-health-monitor.ts";
import type { OwnedAssignments } from "./owned-assignments.ts";

export interface RebalancerOptions {
  readonly owned: () => OwnedAssignments;
  readonly health: Pick<CoordinatorHealthMonitor, "peers">;
  readonly publisher: Pick<JobHandoffPublisher, "handOver">;
  readonly offers: Pick<JobHandoffSubscriber, "pause">;
  /** Tells the others what we own now. */
  readonly beat: () => Promise<void>;
  readonly identity: NodeIdentity;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly enabled: boolean;
  readonly intervalMs: number;
  readonly ratio: number;
}

/** Gives assignments away when this node owns many more jobs than the one that owns least. */
export class Rebalancer {
  readonly #o: RebalancerOptions;
  #over = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #movedAt = -Infinity;

  constructor(options: RebalancerOptions) {
    this.#o = options;
  }

  start(): void {
    this.#over.abort();
    this.#over = new AbortController();
    if (this.#o.enabled) this.#running = this.#run(this.#over.signal);
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#running;
  }

  async #run(over: AbortSignal): Promise<void> {
    const { clock, random, intervalMs, log } = this.#o;
    while (!over.aborted) {
      // Spread, so that no two decide at the same moment by what the others had before.
      await clock.sleep(intervalMs * (1 + random.chance() / 4), over);
      if (over.aborted) return;
      try {
        await this.#balance(over);
      } catch (error) {
        log.error({ err: error }, "owned jobs could not be balanced; trying again later");
      }
    }
  }

  async #balance(over: AbortSignal): Promise<void> {
    const { owned, health, publisher, offers, identity, clock, log, ratio, beat } = this.#o;
    const peers = health.peers().flatMap(({ name, jobs, heardAt }) => {
      // What it said before the last move, it said without what it got in that.
      return jobs === null || heardAt === null || heardAt < this.#movedAt ? [] : [{ name, jobs }];
    });
    const wanted = jobsToGive({ name: identity.name, jobs: owned().jobs }, peers, { ratio });
    const all = owned()
      .all()
      .filter(({ counted }) => counted);
    const sizes = all.map(({ left }) => left);
    const given = chooseSizes(sizes, wanted).map((place) => all[place]!);
    if (given.length === 0) return;

    const resume = offers.pause();
    let jobs = 0;
    try {
      await publisher.handOver(given, {
        reason: "rebalance",
        whenSilent: "keep",
        stop: over,
        onOver: (one, end) => (jobs += end === "handed_over" ? one.left : 0),
      });
    } finally {
      resume();
      this.#movedAt = clock.monotonic();
    }
    log.info(
      { jobs, assignments: given.length, left: owned().jobs },
      "owned jobs were given to nodes with less",
    );
    await beat();
  }
}

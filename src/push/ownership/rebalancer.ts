/** Gives assignments away when this node owns many more jobs than the node that owns least. */

import { chooseSizes, jobsToGive } from "../../core/push/rebalance.ts";
import type { JobHandoffSubscriber } from "./job-handoff-subscriber.ts";
import { Loop } from "../../platform/loop.ts";
import type { HandoffContext } from "./owner-context.ts";

export class Rebalancer {
  readonly #o: HandoffContext;
  readonly #offers: JobHandoffSubscriber;
  readonly #loop: Loop;
  #movedAt = -Infinity;

  constructor(context: HandoffContext, offers: JobHandoffSubscriber) {
    this.#o = context;
    this.#offers = offers;
    this.#loop = new Loop(context.clock, async (over) => {
      await this.#balance(over).catch((error: unknown) =>
        context.log.error({ err: error }, "owned jobs could not be balanced; trying again later"),
      );
      return this.#waitMs();
    });
  }

  start(): void {
    if (this.#o.settings.rebalance) this.#loop.start(this.#waitMs());
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** Jitter, so that no two nodes decide at the same moment by the same old numbers. */
  #waitMs(): number {
    const { settings, random } = this.#o;
    return settings.rebalanceMs * (1 + random.chance() / 4);
  }

  async #balance(over: AbortSignal): Promise<void> {
    const { owned, health, heartbeats, publisher, identity, clock, log, settings } = this.#o;
    const peers = health.peers().flatMap(({ name, jobs, heardAt }) => {
      // A heartbeat from before the last move does not count what that peer got in it.
      return jobs === null || heardAt === null || heardAt < this.#movedAt ? [] : [{ name, jobs }];
    });
    const wanted = jobsToGive({ name: identity.name, jobs: owned.jobs }, peers, settings.rebalanceRatio);
    const all = owned.all().filter(({ counted }) => counted);
    const sizes = all.map(({ left }) => left);
    const given = chooseSizes(sizes, wanted).map((place) => all[place]!);
    if (given.length === 0) return;

    const resume = this.#offers.pause();
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
      { jobs, assignments: given.length, left: owned.jobs },
      "owned jobs were given to nodes with less",
    );
    await heartbeats.beat();
  }
}

import type { HandoffEnd } from "../core/handoff.ts";
import type { DrainProgress, NodeIdentity } from "../core/node.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { OwnershipStore } from "../store/ownership.ts";
import type { CoordinatorHealthMonitor } from "./coordinator-health-monitor.ts";
import type { JobHandoffPublisher } from "./job-handoff-publisher.ts";
import { doneBefore } from "./done-before.ts";
import { inBatches } from "./in-batches.ts";
import type { OwnedAssignment, OwnedAssignments } from "./owned-assignments.ts";
import type { StoreRetry } from "./store-retry.ts";

export interface CoordinatorDrainServiceOptions {
  readonly ownership: Pick<OwnershipStore, "read" | "release">;
  readonly owned: () => OwnedAssignments;
  readonly publisher: Pick<JobHandoffPublisher, "handOver" | "offerReleased">;
  readonly health: Pick<CoordinatorHealthMonitor, "peers">;
  readonly identity: NodeIdentity;
  readonly calls: StoreRetry;
  readonly clock: Clock;
  readonly log: Log;
  readonly orphanWaitMs: number;
  readonly hardMs: number;
}

export interface DrainOptions {
  /** Fires: what is left is released at once. */
  readonly hurry: AbortSignal;
  /** Fires: what is not handed over stays ours. */
  readonly callOff?: AbortSignal;
  readonly onProgress?: (progress: DrainProgress) => void;
}

/** Jobs, by what became of them. */
export type DrainOutcome = Pick<DrainProgress, "handedOver" | "finished" | "orphaned" | "released">;

/** How often it is looked whether anybody is left to hand over to. */
const PEERS_MS = 250;
/** How often the store is asked whether somebody has taken what was orphaned. */
const ORPHANS_MS = 500;
/** How long a release goes on trying. Longer, and a stop without a store ends as a kill. */
const RELEASE_MS = 2_000;

/**
 * Hands over all that this node owns, before it goes. Who runs the jobs does not notice.
 *
 *   handing over ──all through──> waiting for takers of orphans ──taken, or after a while──> drained
 *        '───────────── hurry, the hard limit, or nobody is left: the rest is released ─────────────'
 */
export class CoordinatorDrainService {
  readonly #o: CoordinatorDrainServiceOptions;
  #counts: Counts | null = null;

  constructor(options: CoordinatorDrainServiceOptions) {
    this.#o = options;
  }

  /** Of the drain that is under way or was the last one; null after a resume. */
  progress(): DrainProgress | null {
    if (!this.#counts) return null;
    const { owned, handedOver, orphaned, released, kept } = this.#counts;
    const waiting = kept ?? this.#o.owned().jobs;
    const finished = Math.max(0, owned - handedOver - orphaned - released - waiting);
    return { owned, handedOver, finished, waiting, orphaned, released };
  }

  resume(): void {
    this.#counts = null;
  }

  /** Nothing may be taken from now on. When `cancel` fires, what is not handed over stays ours. */
  async drain({ hurry, onProgress }: DrainOptions, cancel: AbortSignal): Promise<DrainOutcome> {
    const { owned, publisher, health, clock, log } = this.#o;
    const counts: Counts = { owned: owned().jobs, handedOver: 0, orphaned: 0, released: 0, kept: null };
    this.#counts = counts;
    const orphans: OwnedAssignment[] = [];
    const tell = (): void => onProgress?.(this.progress()!);
    const onOver = (one: OwnedAssignment, end: HandoffEnd): void => {
      if (end === "handed_over") counts.handedOver += one.left;
      if (end === "orphaned") {
        counts.orphaned += one.left;
        orphans.push(one);
      }
      tell();
    };

    const limit = new AbortController();
    const callOff = clock.after(this.#o.hardMs, () => limit.abort());
    const stop = AbortSignal.any([hurry, limit.signal, cancel]);
    const watching = this.#watchPeers(limit, stop);
    tell();
    if (health.peers().length === 0) limit.abort();
    await publisher.handOver(owned().all(), { reason: "shutdown", whenSilent: "orphan", stop, onOver });
    await this.#awaitTakers(orphans, counts, stop, tell);
    if (owned().size > 0 && !cancel.aborted) counts.released += await this.releaseAll();
    callOff();
    limit.abort();
    await watching;

    counts.kept = cancel.aborted ? owned().jobs : 0;
    tell();
    const { waiting: kept, owned: all, ...outcome } = this.progress()!;
    log.info({ jobs: all, kept, ...outcome }, "the drain of owned jobs is over");
    return outcome;
  }

  /** Gives up all that is owned, and offers it to whoever is there. What the store does not hear of stays ours. */
  async releaseAll(): Promise<number> {
    const { ownership, owned, identity, publisher, health, calls, clock, log } = this.#o;
    const those = owned().all();
    const jobs = those.reduce((sum, { left }) => sum + left, 0);
    const late = new AbortController();
    const callOff = clock.after(RELEASE_MS, () => late.abort());
    const releasing = inBatches(those, async (batch) => {
      const held = batch.map(({ assignment, ownerEpoch }) => ({ assignment, ownerEpoch }));
      await calls.until(() => ownership.release(held, identity, "unowned"), late.signal);
      for (const one of batch) owned().end(one, "given");
      if (health.peers().length > 0) await publisher.offerReleased(batch, "shutdown");
    });
    const released = await doneBefore(releasing, late.signal).catch(() => false);
    if (!released)
      log.error({ jobs }, "owned jobs could not be given up; they are found when this node is gone");
    callOff();
    late.abort();
    return jobs;
  }

  async #watchPeers(limit: AbortController, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await this.#o.clock.sleep(PEERS_MS, stop);
      if (!stop.aborted && this.#o.health.peers().length === 0) limit.abort();
    }
  }

  /** The leader offers orphans again: their old owner stays for a while, to tell what became of them. */
  async #awaitTakers(
    orphans: readonly OwnedAssignment[],
    counts: Counts,
    stop: AbortSignal,
    tell: () => void,
  ): Promise<void> {
    const { ownership, clock, orphanWaitMs } = this.#o;
    const until = clock.monotonic() + orphanWaitMs;
    let waiting = orphans;
    while (waiting.length > 0 && !stop.aborted) {
      const asked = waiting;
      const found = await ownership.read(asked.map(({ assignment }) => assignment)).catch(() => null);
      if (found) {
        waiting = asked.filter((_, at) => found[at] && found[at].owner === null);
        for (const [at, { left }] of asked.entries()) {
          if (found[at]?.owner === null) continue;
          counts.orphaned -= left;
          if (found[at]) counts.handedOver += left;
        }
        if (waiting.length < asked.length) tell();
      }
      const leftMs = until - clock.monotonic();
      if (waiting.length === 0 || leftMs <= 0) return;
      await clock.sleep(Math.min(ORPHANS_MS, leftMs), stop);
    }
  }
}

/** The rest of what was owned has finished, or waits. */
interface Counts {
  readonly owned: number;
  handedOver: number;
  orphaned: number;
  released: number;
  /** What is still ours, once the drain is over; null before. */
  kept: number | null;
}

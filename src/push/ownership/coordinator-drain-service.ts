/**
 * Hands over all that this node owns before it stops. The workers that run the jobs do not notice.
 *
 *   handing over ──all done──> waiting for new owners of orphans ──taken, or after a while──> drained
 *        '───────────── hurry, the hard limit, or no peer is left: the rest is released ─────────────'
 */

import type { HandoffEnd } from "../../core/push/handoff-rules.ts";
import type { DrainProgress } from "../../core/node.ts";
import { Deadline, inBatches, repeat, within } from "../../platform/loop.ts";
import type { OwnedAssignment } from "./owned-assignments.ts";
import type { HandoffContext } from "./owner-context.ts";

export interface DrainOptions {
  /** Aborted: what is left is released at once. */
  readonly hurry: AbortSignal;
  /** Aborted: what is not handed over stays ours. */
  readonly callOff?: AbortSignal;
  readonly onProgress?: (progress: DrainProgress) => void;
}

export type DrainOutcome = Pick<DrainProgress, "handedOver" | "finished" | "orphaned" | "released">;

const PEERS_MS = 250;
const ORPHANS_MS = 500;
/** How long a release goes on trying. Longer, and a stop without a store ends as a kill. */
const RELEASE_MS = 2_000;

export class CoordinatorDrainService {
  readonly #o: HandoffContext;
  #counts: Counts | null = null;

  constructor(context: HandoffContext) {
    this.#o = context;
  }

  /** Of the present drain or the last one; null after a resume. */
  progress(): DrainProgress | null {
    if (!this.#counts) return null;
    const { owned, handedOver, orphaned, released, kept } = this.#counts;
    const waiting = kept ?? this.#o.owned.jobs;
    const finished = Math.max(0, owned - handedOver - orphaned - released - waiting);
    return { owned, handedOver, finished, waiting, orphaned, released };
  }

  resume(): void {
    this.#counts = null;
  }

  /** The caller takes nothing from now on. When `cancel` is aborted, what is not handed over stays ours. */
  async drain({ hurry, onProgress }: DrainOptions, cancel: AbortSignal): Promise<DrainOutcome> {
    const { owned, publisher, health, clock, log } = this.#o;
    const counts: Counts = { owned: owned.jobs, handedOver: 0, orphaned: 0, released: 0, kept: null };
    this.#counts = counts;
    const orphans: OwnedAssignment[] = [];
    const report = (): void => onProgress?.(this.progress()!);
    const onOver = (one: OwnedAssignment, end: HandoffEnd): void => {
      if (end === "handed_over") counts.handedOver += one.left;
      if (end === "orphaned") {
        counts.orphaned += one.left;
        orphans.push(one);
      }
      report();
    };

    using limit = new Deadline(clock, this.#o.settings.hardMs, hurry, cancel);
    const stop = limit.signal;
    report();
    const watching = repeat(clock, stop, async () => {
      if (health.peers().length === 0) limit.end();
      return PEERS_MS;
    });
    await publisher.handOver(owned.all(), { reason: "shutdown", whenSilent: "orphan", stop, onOver });
    await this.#awaitNewOwners(orphans, counts, stop, report);
    if (owned.size > 0 && !cancel.aborted) counts.released += await this.releaseAll();
    limit.end();
    await watching;

    counts.kept = cancel.aborted ? owned.jobs : 0;
    report();
    const { waiting: kept, owned: all, ...outcome } = this.progress()!;
    log.info({ jobs: all, kept, ...outcome }, "the drain of owned jobs is over");
    return outcome;
  }

  /** Gives up all that is owned, and offers it to the peers. What the store does not confirm stays ours. */
  async releaseAll(): Promise<number> {
    const { ownership, owned, identity, publisher, health, retry, clock, log } = this.#o;
    const those = owned.all();
    const jobs = those.reduce((sum, { left }) => sum + left, 0);
    using late = new Deadline(clock, RELEASE_MS);
    const releasing = inBatches(those, async (batch) => {
      const held = batch.map(({ assignment, ownerEpoch }) => ({ assignment, ownerEpoch }));
      await retry.call(() => ownership.release(held, identity, "unowned"), late.signal);
      for (const one of batch) owned.end(one, "given");
      if (health.peers().length > 0) await publisher.offerReleased(batch, "shutdown");
    });
    const done = releasing.then(() => true);
    const released = await within(clock, Infinity, done, late.signal).catch(() => false);
    if (!released)
      log.error({ jobs }, "owned jobs could not be given up; they are found when this node is gone");
    late.end();
    return jobs;
  }

  /** The leader offers orphans again: this node waits for a while, to report what became of them. */
  async #awaitNewOwners(
    orphans: readonly OwnedAssignment[],
    counts: Counts,
    stop: AbortSignal,
    report: () => void,
  ): Promise<void> {
    const { ownership, clock, settings } = this.#o;
    const until = clock.monotonic() + settings.orphanWaitMs;
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
        if (waiting.length < asked.length) report();
      }
      const leftMs = until - clock.monotonic();
      if (waiting.length === 0 || leftMs <= 0) return;
      await clock.sleep(Math.min(ORPHANS_MS, leftMs), stop);
    }
  }
}

/** Numbers of jobs. The rest of `owned` has finished, or waits. */
interface Counts {
  readonly owned: number;
  handedOver: number;
  orphaned: number;
  released: number;
  kept: number | null;
}

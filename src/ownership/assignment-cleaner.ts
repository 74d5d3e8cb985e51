import type { NodeIdentity } from "../core/node.ts";
import { Batcher } from "../platform/batcher.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Held, OwnershipStore } from "../store/ownership.ts";
import type { OwnedAssignment, OwnedAssignments } from "./owned-assignments.ts";
import type { StoreRetry } from "./store-retry.ts";

export interface AssignmentCleanerOptions {
  readonly ownership: Pick<OwnershipStore, "forget" | "read" | "unfinished">;
  readonly owned: () => OwnedAssignments;
  readonly identity: NodeIdentity;
  readonly calls: StoreRetry;
  /** Takes what is ours without our knowing it. */
  readonly recall: () => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

/** How often those are looked for that the store is to be asked about. */
const LOOK_MS = 1_000;
/** How long one is quiet before the store is asked: its jobs may have been recovered, or never accepted. */
const QUIET_MS = 5_000;
/** One that stays quiet runs a long job. Asking oftener, the owner of ten thousand of them would ask all the time. */
const QUIET_MS_MAX = 60_000;
/** In one walk through the jobs, which costs the same for few as for many. */
const ASKED_MAX = 5_000;

/** Forgets assignments whose jobs have ended, also those that ended without a word to their owner. */
export class AssignmentCleaner {
  readonly #o: AssignmentCleanerOptions;
  readonly #forgotten: Batcher<Held, undefined>;
  #over = new AbortController();
  #looking: Promise<void> = Promise.resolve();

  constructor(options: AssignmentCleanerOptions) {
    this.#o = options;
    this.#forgotten = new Batcher({ flush: (batch) => this.#forget(batch) });
  }

  start(): void {
    this.#over = new AbortController();
    this.#looking = this.#run(this.#over.signal);
  }

  /** What is to be forgotten and is not yet is removed by the leader, as it has no jobs. */
  async stop(): Promise<void> {
    this.#over.abort();
    await this.#looking;
  }

  /** It has been taken. */
  taken(owned: OwnedAssignment): void {
    owned.lookAfterMs = QUIET_MS;
    owned.lookAt = owned.counted ? this.#o.clock.monotonic() + QUIET_MS : 0;
  }

  /** Something was heard of it. */
  heard(owned: OwnedAssignment): void {
    if (owned.left === 0 && owned.counted) return this.#finish(owned);
    owned.lookAfterMs = QUIET_MS;
    if (owned.counted) owned.lookAt = this.#o.clock.monotonic() + QUIET_MS;
    else if (owned.left === 0) owned.lookAt = 0;
  }

  /** Asks the store about all whose number of jobs is a guess, for so long at most. */
  async count(over: AbortSignal, patienceMs: number): Promise<void> {
    await this.#ask(
      this.#o
        .owned()
        .all()
        .filter((owned) => !owned.counted),
      over,
      patienceMs,
    );
  }

  async #run(over: AbortSignal): Promise<void> {
    const { clock, log, recall } = this.#o;
    while (!over.aborted) {
      await clock.sleep(LOOK_MS, over);
      if (over.aborted) return;
      const now = clock.monotonic();
      const due = this.#o
        .owned()
        .all()
        .filter((owned) => owned.writing === 0 && owned.lookAt <= now);
      try {
        await recall();
        await this.#ask(due, over);
      } catch (error) {
        if (!over.aborted) log.error({ err: error }, "could not look at quiet assignments; trying again");
      }
    }
  }

  async #ask(those: readonly OwnedAssignment[], over: AbortSignal, patienceMs?: number): Promise<void> {
    for (let from = 0; from < those.length; from += ASKED_MAX)
      await this.#askBatch(those.slice(from, from + ASKED_MAX), over, patienceMs);
  }

  async #askBatch(batch: readonly OwnedAssignment[], over: AbortSignal, patienceMs?: number): Promise<void> {
    const { ownership, calls, identity, clock } = this.#o;
    const ids = batch.map((owned) => owned.assignment);
    const before = batch.map(({ events, ownerEpoch }) => ({ events, ownerEpoch }));
    const [owners, unfinished] = await calls.until(
      () => Promise.all([ownership.read(ids), ownership.unfinished(ids)]),
      over,
      patienceMs,
    );
    const now = clock.monotonic();
    for (const [at, owned] of batch.entries()) {
      const { events, ownerEpoch } = before[at]!;
      if (!this.#o.owned().has(owned) || owned.ownerEpoch !== ownerEpoch) continue;
      const found = owners[at];
      const ours = found?.owner?.incarnation === identity.incarnation && found.ownerEpoch === ownerEpoch;
      if (found && !ours) {
        this.#o.owned().end(owned, "lost");
        continue;
      }
      owned.lookAt = now + owned.lookAfterMs;
      owned.lookAfterMs = Math.min(owned.lookAfterMs * 2, QUIET_MS_MAX);
      // Events that were written meanwhile may or may not be in the number.
      if (owned.writing > 0 || owned.events !== events) continue;
      this.#o.owned().recount(owned, unfinished[at]!);
      if (owned.left === 0) this.#finish(owned);
    }
  }

  /** Forgotten only when its last message is acknowledged: without an owner nobody would handle it again. */
  #finish(owned: OwnedAssignment): void {
    const { owned: all, log } = this.#o;
    if (!all().end(owned, "finished")) return;
    void all()
      .closed(owned)
      .then(() => this.#forgotten.add(owned))
      .catch((error: unknown) => log.debug({ err: error }, "finished assignments were not forgotten"));
  }

  async #forget(batch: readonly Held[]): Promise<undefined[]> {
    const { ownership, identity, calls } = this.#o;
    const held = batch.map(({ assignment, ownerEpoch }) => ({ assignment, ownerEpoch }));
    await calls.until(() => ownership.forget(held, identity), this.#over.signal);
    return batch.map(() => undefined);
  }
}

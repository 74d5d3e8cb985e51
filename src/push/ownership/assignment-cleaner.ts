/**
 * Removes assignments whose jobs have ended. Most end with an event that their owner writes; for quiet ones the store is asked. Adopts
 * assignments whose claim was granted without an answer.
 */

import { Batcher } from "../../platform/batcher.ts";
import type { Held } from "../../store/ownership.ts";
import type { OwnedAssignment, OwnershipListener } from "./owned-assignments.ts";
import { Loop, split } from "../../platform/loop.ts";
import type { OwnerContext } from "./owner-context.ts";
import type { OwnershipClaims } from "./ownership-claims.ts";

const CHECK_MS = 1_000;
/** How long one is quiet before the store is asked: its jobs may have been recovered, or never accepted. */
const QUIET_MS = 5_000;
/** One that stays quiet runs a long job. Shorter, and the owner of ten thousand of them would ask all the time. */
const QUIET_MS_MAX = 60_000;
/** In one query, which costs the same for few as for many. */
const ASKED_MAX = 5_000;

export class AssignmentCleaner implements OwnershipListener {
  readonly #o: OwnerContext;
  readonly #claims: OwnershipClaims;
  readonly #forgotten: Batcher<Held, void>;
  readonly #loop: Loop;
  #over = new AbortController();

  constructor(context: OwnerContext, claims: OwnershipClaims) {
    this.#o = context;
    this.#claims = claims;
    this.#forgotten = new Batcher({ clock: context.clock, flush: (batch) => this.#forget(batch) });
    this.#loop = new Loop(context.clock, async (over) => {
      await this.#check(over);
      return CHECK_MS;
    });
  }

  start(): void {
    this.#over = new AbortController();
    this.#loop.start(CHECK_MS);
  }

  /** Finished assignments that are not forgotten yet are removed by the leader, as they have no jobs. */
  async stop(): Promise<void> {
    this.#over.abort();
    await this.#loop.stop();
  }

  /** Asks the store about all whose number of jobs is a guess, for at most `patienceMs`. */
  async count(over: AbortSignal, patienceMs: number): Promise<void> {
    const guessed = this.#o.owned.all().filter(({ counted }) => !counted);
    await this.#ask(guessed, over, patienceMs);
  }

  taken(owned: OwnedAssignment): void {
    owned.checkAfterMs = QUIET_MS;
    owned.checkAt = owned.counted ? this.#o.clock.monotonic() + QUIET_MS : 0;
  }

  written(owned: OwnedAssignment): void {
    if (owned.left === 0 && owned.counted) return this.#finish(owned);
    owned.checkAfterMs = QUIET_MS;
    if (owned.counted) owned.checkAt = this.#o.clock.monotonic() + QUIET_MS;
    else if (owned.left === 0) owned.checkAt = 0;
  }

  async #check(over: AbortSignal): Promise<void> {
    const { owned, clock, log } = this.#o;
    const now = clock.monotonic();
    const due = owned.all().filter(({ writing, checkAt }) => writing === 0 && checkAt <= now);
    try {
      await this.#claims.recall();
      await this.#ask(due, over);
    } catch (error) {
      if (!over.aborted) log.error({ err: error }, "could not check quiet assignments; trying again");
    }
  }

  async #ask(those: readonly OwnedAssignment[], over: AbortSignal, patienceMs?: number): Promise<void> {
    for (const batch of split(those, ASKED_MAX)) await this.#askBatch(batch, over, patienceMs);
  }

  async #askBatch(batch: readonly OwnedAssignment[], over: AbortSignal, patienceMs?: number): Promise<void> {
    const { ownership, owned: all, retry, identity, clock } = this.#o;
    const ids = batch.map((owned) => owned.assignment);
    const before = batch.map(({ events, ownerEpoch }) => ({ events, ownerEpoch }));
    const owners = await retry.call(() => ownership.read(ids, true), over, patienceMs);
    const now = clock.monotonic();
    for (const [at, owned] of batch.entries()) {
      const { events, ownerEpoch } = before[at]!;
      if (!all.has(owned) || owned.ownerEpoch !== ownerEpoch) continue;
      const found = owners[at];
      const ours = found?.owner?.incarnation === identity.incarnation && found.ownerEpoch === ownerEpoch;
      if (found && !ours) {
        all.end(owned, "lost");
        continue;
      }
      owned.checkAt = now + owned.checkAfterMs;
      owned.checkAfterMs = Math.min(owned.checkAfterMs * 2, QUIET_MS_MAX);
      // Events that were written meanwhile may or may not be in the number.
      if (owned.writing > 0 || owned.events !== events) continue;
      all.recount(owned, found?.unfinished ?? 0);
      if (owned.left === 0) this.#finish(owned);
    }
  }

  /** Forgotten only when its last message is acknowledged: without an owner no node would handle it again. */
  #finish(owned: OwnedAssignment): void {
    const { owned: all, log } = this.#o;
    if (!all.end(owned, "finished")) return;
    void all
      .closed(owned)
      .then(() => this.#forgotten.add(owned))
      .catch((error: unknown) => log.debug({ err: error }, "finished assignments were not forgotten"));
  }

  async #forget(batch: readonly Held[]): Promise<void> {
    const { ownership, identity, retry } = this.#o;
    const held = batch.map(({ assignment, ownerEpoch }) => ({ assignment, ownerEpoch }));
    await retry.call(() => ownership.release(held, identity, "finished"), this.#over.signal);
  }
}

/**
 * A leader's duty: finds assignments without an owner and offers them to the nodes. Each step can be repeated, also by the next leader:
 * what was disowned is found, and what was not taken is found again a little later.
 */

import type { Handoff } from "../../channels/messages.ts";
import { queues } from "../../channels/channel-names.ts";
import { acceptsWork, type NodeIdentity } from "../../core/node.ts";
import type { Term } from "../../core/leadership/term.ts";
import type { AssignmentId, Orphan } from "../../store/ownership.ts";
import { inBatches, Pause } from "../../platform/loop.ts";
import type { JobHandoffSubscriber } from "./job-handoff-subscriber.ts";
import type { HandoffContext } from "./owner-context.ts";

/** How long a new assignment may wait for its first owner before it is offered as an orphan. */
const UNOWNED_MS = 5_000;
/** An offer may be lost, or its new owner may die. Shorter, and nodes that are busy get every offer twice. */
const OFFER_AGAIN_MS = 5_000;
/** Found in one query. More, and the store is busy with it for longer than others should wait. */
const FOUND_MAX = 1_000;
/** A node that has just joined may own something before it is in our list. Shorter, and it would lose that again. */
const STRANGER_MS = 5_000;

export class OrphanJobDetector {
  readonly #o: HandoffContext;
  readonly #offers: Pick<JobHandoffSubscriber, "isOpen">;
  readonly #pause: Pause;
  /** Those without an owner: when each was found first and last; monotonic. */
  readonly #orphans = new Map<AssignmentId, { readonly since: number; seen: number }>();
  /** Incarnations that own something and are not members: when that was found first. */
  #strangers = new Map<string, number>();

  constructor(context: HandoffContext, offers: Pick<JobHandoffSubscriber, "isOpen">) {
    this.#o = context;
    this.#offers = offers;
    this.#pause = new Pause(context.clock);
  }

  /** These incarnations have ended and own nothing any more. Returns how many assignments they owned. */
  async disown(ended: readonly NodeIdentity[], term: Term): Promise<number> {
    const incarnations = ended.map(({ incarnation }) => incarnation);
    const { ownership, events } = this.#o;
    const disowned = await events.fenced("ownership.disown", ownership.disown(incarnations, term));
    if (disowned > 0) this.#pause.wake();
    return disowned;
  }

  found(): { readonly count: number; readonly oldestMs: number } {
    const now = this.#o.clock.monotonic();
    const since = Math.min(now, ...[...this.#orphans.values()].map((orphan) => orphan.since));
    return { count: this.#orphans.size, oldestMs: now - since };
  }

  async duty(term: Term, signal: AbortSignal): Promise<void> {
    const { log } = this.#o;
    const checkMs = this.#o.settings.orphanCheckMs;
    this.#strangers.clear();
    this.#orphans.clear();
    for (let round = 1; !signal.aborted; round++) {
      this.#pause.clear();
      await this.#disownStrangers(term);
      // Without a node that takes them, offers would only pile up.
      const offered = this.#hasTakers() ? await this.#offer(term, signal) : 0;
      if (offered > 0)
        log.warn({ assignments: offered }, "assignments without an owner were offered to the nodes");
      // What the last leader found before it died counts as offered for a while: the first round does not find it.
      const soon = round === 1 || offered > 0 || !this.#hasTakers();
      await this.#pause.sleep(soon ? Math.min(OFFER_AGAIN_MS, checkMs) : checkMs, signal);
    }
  }

  #hasTakers(): boolean {
    const { health, state } = this.#o;
    return (this.#offers.isOpen && acceptsWork(state)) || health.peers().length > 0;
  }

  /**
   * No death is reported of a node that left. It has given up what it owned, unless the store was unavailable then, or granted a claim
   * without an answer: the rest is found by comparing owners with members.
   */
  async #disownStrangers(term: Term): Promise<void> {
    const { ownership, membership, clock, log } = this.#o;
    const owners = await ownership.owners();
    const known = new Set<string>();
    for (const { incarnation, status } of membership.nodes()) if (status !== "dead") known.add(incarnation);
    const now = clock.monotonic();
    const strangers = owners.filter(({ incarnation }) => !known.has(incarnation));
    const since = new Map(
      strangers.map(({ incarnation }) => [incarnation, this.#strangers.get(incarnation) ?? now]),
    );
    this.#strangers = since;
    const gone = strangers.filter(({ incarnation }) => now - since.get(incarnation)! >= STRANGER_MS);
    if (gone.length === 0) return;
    const assignments = await this.disown(gone, term);
    log.warn({ nodes: gone.map(({ name }) => name), assignments }, "owners that are gone were found");
  }

  /** One that was offered is not found for a while, so it counts as taken only when it has not been found for longer. */
  #remember(found: readonly Orphan[]): void {
    const now = this.#o.clock.monotonic();
    for (const { assignment } of found) {
      const known = this.#orphans.get(assignment);
      if (known) known.seen = now;
      else this.#orphans.set(assignment, { since: now, seen: now });
    }
    for (const [assignment, { seen }] of this.#orphans)
      if (now - seen > 2 * OFFER_AGAIN_MS) this.#orphans.delete(assignment);
  }

  async #offer(term: Term, signal: AbortSignal): Promise<number> {
    const { ownership, channels, clock, events } = this.#o;
    const query = { unownedForMs: UNOWNED_MS, offeredBeforeMs: OFFER_AGAIN_MS, limit: FOUND_MAX };
    for (let offered = 0; ;) {
      const found = await events.fenced("ownership.orphans", ownership.orphans(query, term));
      this.#remember(found);
      const at = new Date(clock.now()).toISOString();
      await inBatches(found, (batch) => {
        const offers = batch.map((orphan) => ({ key: `${orphan.assignment}`, body: offerOf(orphan, at) }));
        return channels.send(queues.handoff, offers);
      });
      offered += found.length;
      if (found.length < FOUND_MAX || signal.aborted) return offered;
    }
  }
}

function offerOf({ assignment, last, ownerEpoch }: Orphan, at: string): Handoff {
  return { assignment, from: last, ownerEpoch, reason: "node_crash", at };
}

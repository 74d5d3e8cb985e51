import type { Channels } from "../channels/channels.ts";
import type { Handoff } from "../channels/messages.ts";
import { queues } from "../channels/names.ts";
import type { Membership } from "../coordination/coordination.ts";
import type { NodeIdentity } from "../core/node.ts";
import type { Term } from "../core/term.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { NodeEvents } from "../platform/node-events.ts";
import type { AssignmentId, Orphan, OwnershipStore } from "../store/ownership.ts";
import { inBatches } from "./in-batches.ts";

export interface OrphanJobDetectorOptions {
  readonly ownership: Pick<OwnershipStore, "disown" | "orphans" | "owners">;
  readonly membership: Pick<Membership, "nodes">;
  readonly channels: Pick<Channels, "send">;
  /** Whether any node would take an offer now. */
  readonly takers: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: NodeEvents;
  readonly checkMs: number;
}

/** What the leader has just made has so long to be taken as an assignment before it is offered as an orphan. */
const UNOWNED_MS = 5_000;
/** An offer may be lost, or its taker die. Sooner, and those who are busy taking get every offer twice. */
const OFFER_AGAIN_MS = 5_000;
/** Found in one look. More, and the store is busy for longer with it than others should wait. */
const FOUND_MAX = 1_000;
/** A node that has just joined may own something before we have it in our list. Shorter, and it would lose that again. */
const STRANGER_MS = 5_000;

/**
 * A leader's duty: finds assignments without an owner and offers them to the nodes. Each step can be done again, by whoever leads
 * then: what was disowned is found, and what was found and not taken is found again a little later.
 */
export class OrphanJobDetector {
  readonly #o: OrphanJobDetectorOptions;
  #told = new AbortController();
  /** Those without an owner, as the last looks found them: since when, and when last; monotonic. */
  readonly #orphans = new Map<AssignmentId, { readonly since: number; seen: number }>();
  /** Lives that own something and are not among the nodes: since when they were seen so. */
  #strangers = new Map<string, number>();

  constructor(options: OrphanJobDetectorOptions) {
    this.#o = options;
  }

  /** These lives have ended: nothing is theirs any more. Answers how many assignments were. */
  async disown(lives: readonly NodeIdentity[], term: Term): Promise<number> {
    const incarnations = lives.map(({ incarnation }) => incarnation);
    const { ownership, events } = this.#o;
    const disowned = await events.fenced("ownership.disown", ownership.disown(incarnations, term));
    if (disowned > 0) this.#told.abort();
    return disowned;
  }

  /** How many have no owner, and how long the oldest of them has had none, as far as a leader knows. */
  orphans(): { readonly count: number; readonly oldestMs: number } {
    const now = this.#o.clock.monotonic();
    const since = Math.min(now, ...[...this.#orphans.values()].map((orphan) => orphan.since));
    return { count: this.#orphans.size, oldestMs: now - since };
  }

  async duty(term: Term, signal: AbortSignal): Promise<void> {
    const { clock, checkMs, takers, log } = this.#o;
    this.#strangers.clear();
    this.#orphans.clear();
    for (let look = 1; !signal.aborted; look++) {
      this.#told = new AbortController();
      const told = AbortSignal.any([signal, this.#told.signal]);
      await this.#disownStrangers(term);
      // Without takers, offers would only pile up.
      const offered = takers() ? await this.#offer(term, signal) : 0;
      if (offered > 0)
        log.warn({ assignments: offered }, "assignments without an owner were offered to the nodes");
      // What the last leader found as it died counts as offered for a while: the first look does not show it.
      const soon = look === 1 || offered > 0 || !takers();
      await clock.sleep(soon ? Math.min(OFFER_AGAIN_MS, checkMs) : checkMs, told);
    }
  }

  /**
   * A node that went in peace has given up what it owned, unless the store was away then, or granted a claim of which it never
   * heard. Nobody is told of the death of somebody who left: what is left behind is found by asking who is known.
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

  /** One that was offered is not found for a while, so one that is not found has been taken only if it stays so for longer. */
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
    const look = { unownedForMs: UNOWNED_MS, offeredBeforeMs: OFFER_AGAIN_MS, limit: FOUND_MAX };
    for (let offered = 0; ;) {
      const found = await events.fenced("ownership.orphans", ownership.orphans(look, term));
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

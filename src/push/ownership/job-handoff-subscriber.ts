/** Competes for assignments that are offered to another owner, takes them over, and acknowledges that. Other offers go back to the queue. */

import type { Delivery, Subscription } from "../../channels/channels.ts";
import type { Handoff, HandoffAck } from "../../channels/messages.ts";
import { queues, topics } from "../../channels/channel-names.ts";
import { takesMore } from "../../core/push/rebalance.ts";
import type { HandoffContext } from "./owner-context.ts";
import type { OwnershipClaims } from "./ownership-claims.ts";

const BATCH_MAX = 100;
/** The pause after an offer that is not for us. Shorter, and we get it again before the others do. */
const PAUSE_MS = 250;

type Judgement = "claim" | "put back" | "drop";

export class JobHandoffSubscriber {
  readonly #o: HandoffContext;
  readonly #claims: OwnershipClaims;
  #subscription: Subscription | null = null;
  #wanted = false;
  #pauses = 0;
  #closed: Promise<unknown> = Promise.resolve();

  constructor(context: HandoffContext, claims: OwnershipClaims) {
    this.#o = context;
    this.#claims = claims;
  }

  get isOpen(): boolean {
    return this.#wanted;
  }

  open(): void {
    this.#wanted = true;
    this.#consume();
  }

  /** Takes no more; claims that are under way are completed. */
  async close(): Promise<void> {
    this.#wanted = false;
    this.#leave();
    await this.#closed;
  }

  /** Takes none until the returned function is called, once. */
  pause(): () => void {
    this.#pauses++;
    this.#leave();
    return () => {
      this.#pauses--;
      this.#consume();
    };
  }

  #consume(): void {
    if (!this.#wanted || this.#pauses > 0) return;
    this.#subscription ??= this.#o.channels.consume(queues.handoff, (batch) => this.#handle(batch), {
      batchMax: BATCH_MAX,
    });
  }

  #leave(): void {
    this.#closed = Promise.all([this.#closed, this.#subscription?.close().catch(() => {})]);
    this.#subscription = null;
  }

  async #handle(batch: readonly Delivery[]): Promise<void> {
    const offers = Map.groupBy(
      batch.map(({ body }) => body as Handoff),
      (offer) => this.#judge(offer),
    );
    const claimed = offers.get("claim") ?? [];
    const epochs = await this.#claims.claim(claimed.map((offer) => ({ ...offer, jobs: offer.jobs ?? null })));
    for (const [at, { assignment, from, jobs = null, reason }] of claimed.entries()) {
      const ownerEpoch = epochs[at] ?? null;
      if (ownerEpoch === null) continue;
      this.#o.events.emit("assignment.taken_over", { assignment, from, ownerEpoch, jobs, reason });
    }
    await this.#acknowledge(claimed, epochs);
    // A node that rebalances next should know what we have now.
    if (claimed.some(({ reason }) => reason === "rebalance")) await this.#o.heartbeats.beat();
    await this.#putBack(offers.get("put back") ?? []);
  }

  #judge({ assignment, ownerEpoch, from, reason }: Handoff): Judgement {
    const { owned, publisher, health } = this.#o;
    if (owned.get(assignment)?.ownerEpoch === ownerEpoch) {
      // Our own offer: it is still wanted, or we have kept the assignment meanwhile.
      return publisher.isHandingOver(assignment) ? "put back" : "drop";
    }
    if (!this.#wanted) return "put back";
    if (reason !== "rebalance") return "claim";
    const peers = health.peers();
    // If no node wants it, its owner gets the offer back and drops it; if that node is gone, none would.
    if (!peers.some(({ name }) => name === from)) return "claim";
    const others = peers.flatMap(({ jobs }) => (jobs === null ? [] : [jobs]));
    return takesMore(owned.jobs, others) ? "claim" : "put back";
  }

  /** Many at a time. A lost acknowledgement costs the giver a read of the store. */
  async #acknowledge(offers: readonly Handoff[], epochs: readonly (number | null)[]): Promise<void> {
    const { channels, identity, log } = this.#o;
    const acks = offers.flatMap(({ assignment, from, reason }, at) => {
      const ownerEpoch = epochs[at] ?? null;
      // A dead node waits for no answer.
      if (from === null || reason === "node_crash" || ownerEpoch === null) return [];
      const body: HandoffAck = { assignment, newOwner: identity.name, ownerEpoch };
      return [{ from, message: { key: `${assignment}`, body } }];
    });
    for (const [from, theirs] of Map.groupBy(acks, (ack) => ack.from)) {
      const messages = theirs.map(({ message }) => message);
      await channels.publish(topics.handoffAck(from), messages).catch((err: unknown) => {
        log.debug({ err, from, acks: messages.length }, "acknowledgements may not have arrived");
      });
    }
  }

  async #putBack(offers: readonly Handoff[]): Promise<void> {
    if (offers.length === 0) return;
    const { channels, clock } = this.#o;
    await channels.send(
      queues.handoff,
      offers.map((body) => ({ key: `${body.assignment}`, body })),
    );
    clock.after(PAUSE_MS, this.pause());
  }
}

import type { Channels, Delivery, Subscription } from "../channels/channels.ts";
import type { Handoff, HandoffAck } from "../channels/messages.ts";
import { queues, topics } from "../channels/names.ts";
import type { NodeName } from "../core/ids.ts";
import type { NodeIdentity } from "../core/node.ts";
import { takesMore } from "../core/rebalance.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { NodeEvents } from "../platform/node-events.ts";
import type { AssignmentId } from "../store/ownership.ts";
import type { CoordinatorHealthMonitor } from "./health-monitor.ts";
import type { OwnedAssignments } from "./owned-assignments.ts";
import type { OwnershipClaims } from "./ownership-claims.ts";

export interface JobHandoffSubscriberOptions {
  readonly channels: Pick<Channels, "consume" | "publish" | "send">;
  readonly claims: Pick<OwnershipClaims, "claim">;
  readonly owned: () => OwnedAssignments;
  readonly health: Pick<CoordinatorHealthMonitor, "peers">;
  /** Whether we are giving this one away at the moment. */
  readonly giving: (assignment: AssignmentId) => boolean;
  /** Tells the others what we own now. */
  readonly beat: () => Promise<void>;
  readonly identity: NodeIdentity;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: NodeEvents;
}

/** Taken together, in one write of the store. */
const BATCH_MAX = 100;
/** How long offers are left to others after one came that is not for us. Shorter, and we take it again before they hear of it. */
const PAUSE_MS = 250;

type Judgement = "claim" | "put back" | "drop";

/** Competes for assignments that look for another owner, takes them over, and tells whoever gave them. */
export class JobHandoffSubscriber {
  readonly #o: JobHandoffSubscriberOptions;
  #subscription: Subscription | null = null;
  #wanted = false;
  #pauses = 0;
  readonly #closing = new Set<Promise<void>>();

  constructor(options: JobHandoffSubscriberOptions) {
    this.#o = options;
  }

  open(): void {
    this.#wanted = true;
    this.#consume();
  }

  /** Takes no more; what is in hand is taken to its end. */
  async close(): Promise<void> {
    this.#wanted = false;
    this.#leave();
    await Promise.all(this.#closing);
  }

  /** Takes none until the returned function is called. */
  pause(): () => void {
    this.#pauses++;
    this.#leave();
    let paused = true;
    return () => {
      if (!paused) return;
      paused = false;
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
    const closing = this.#subscription?.close().catch(() => {});
    this.#subscription = null;
    if (!closing) return;
    this.#closing.add(closing);
    void closing.then(() => this.#closing.delete(closing));
  }

  async #handle(batch: readonly Delivery[]): Promise<void> {
    const offers = Map.groupBy(
      batch.map(({ body }) => body as Handoff),
      (offer) => this.#judge(offer),
    );
    const claimed = offers.get("claim") ?? [];
    const epochs = await this.#o.claims.claim(
      claimed.map((offer) => ({ ...offer, jobs: offer.jobs ?? null })),
    );
    for (const [at, { assignment, from, jobs = null, reason }] of claimed.entries()) {
      const ownerEpoch = epochs[at] ?? null;
      if (ownerEpoch === null) continue;
      this.#o.events.emit("assignment.taken_over", { assignment, from, ownerEpoch, jobs, reason });
    }
    await this.#acknowledge(claimed, epochs);
    // Whoever thinks of giving next should know what we have now.
    if (claimed.some(({ reason }) => reason === "rebalance")) await this.#o.beat();
    await this.#putBack(offers.get("put back") ?? []);
  }

  #judge({ assignment, ownerEpoch, from, reason }: Handoff): Judgement {
    const { owned, giving, health } = this.#o;
    if (owned().get(assignment)?.ownerEpoch === ownerEpoch) {
      // Ours, and still to be given, or an offer that we have thought better of.
      return giving(assignment) ? "put back" : "drop";
    }
    if (!this.#wanted) return "put back";
    if (reason !== "rebalance") return "claim";
    const peers = health.peers();
    // Whoever gave it finds it again, and drops it, when nobody wants it; if that node is gone, nobody would.
    if (!peers.some(({ name }) => name === from)) return "claim";
    const others = peers.flatMap(({ jobs }) => (jobs === null ? [] : [jobs]));
    return takesMore(owned().jobs, others) ? "claim" : "put back";
  }

  /** Many at a time. One that is lost costs its giver a look into the store. */
  async #acknowledge(offers: readonly Handoff[], epochs: readonly (number | null)[]): Promise<void> {
    const { channels, identity, log } = this.#o;
    const acks = new Map<NodeName, HandoffAck[]>();
    for (const [at, { assignment, from, reason }] of offers.entries()) {
      const ownerEpoch = epochs[at];
      // The dead wait for no answer.
      if (from === null || reason === "node_crash" || ownerEpoch === null || ownerEpoch === undefined)
        continue;
      const ack = { assignment, newOwner: identity.name, ownerEpoch };
      acks.set(from, [...(acks.get(from) ?? []), ack]);
    }
    for (const [from, bodies] of acks) {
      try {
        await channels.publish(
          topics.handoffAck(from),
          bodies.map((body) => ({ key: `${body.assignment}`, body })),
        );
      } catch (error) {
        log.debug({ err: error, from, acks: bodies.length }, "acknowledgements may not have been heard");
      }
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

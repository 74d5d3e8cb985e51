/**
 * Offers assignments to the other nodes and waits until one takes them. core/push/handoff-rules.ts decides; this carries it out, many offers
 * in a message and many rows in a read. JobHandoffAckListener receives the answers.
 */

import type { Subscription } from "../../channels/channels.ts";
import type { Handoff, HandoffAck, HandoffReason } from "../../channels/messages.ts";
import { queues, topics } from "../../channels/channel-names.ts";
import {
  beginHandoff,
  stepHandoff,
  type HandoffEffect,
  type HandoffEnd,
  type HandoffEvent,
  type HandoffRules,
  type HandoffState,
  type HandoffStep,
} from "../../core/push/handoff-rules.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { AssignmentId } from "../../store/ownership.ts";
import { inBatches, STORE_RETRY_MS, within } from "../../platform/loop.ts";
import type { OwnedAssignment, OwnershipEnd, OwnershipListener } from "./owned-assignments.ts";
import type { OwnerContext } from "./owner-context.ts";

export interface HandOverOptions {
  readonly reason: HandoffReason;
  readonly whenSilent: HandoffRules["whenSilent"];
  /** When it is aborted, what is not handed over yet stays ours. */
  readonly stop: AbortSignal;
  readonly onOver?: (owned: OwnedAssignment, end: HandoffEnd) => void;
}

interface Round extends HandOverOptions {
  readonly rules: HandoffRules;
  readonly through: AbortController;
  readonly effects: Record<NonNullable<HandoffEffect>, Handing[]>;
  open: number;
}

interface Handing {
  readonly owned: OwnedAssignment;
  readonly round: Round;
  state: HandoffState;
}

export class JobHandoffPublisher implements OwnershipListener {
  readonly #o: OwnerContext;
  readonly #handing = new Map<AssignmentId, Handing>();
  #troubled = false;

  constructor(context: OwnerContext) {
    this.#o = context;
  }

  isHandingOver(assignment: AssignmentId): boolean {
    return this.#handing.has(assignment);
  }

  /** Resolves when all are handed over or kept, or `stop` was aborted. */
  async handOver(those: readonly OwnedAssignment[], options: HandOverOptions): Promise<void> {
    const round: Round = {
      ...options,
      rules: { ...this.#o.settings, whenSilent: options.whenSilent },
      through: new AbortController(),
      effects: { offer: [], read: [], orphan: [] },
      open: 0,
    };
    for (const owned of those) {
      const { state, effect } = beginHandoff();
      const handing: Handing = { owned, round, state };
      this.#handing.set(owned.assignment, handing);
      round.open++;
      if (effect) round.effects[effect].push(handing);
    }
    const over = AbortSignal.any([round.through.signal, options.stop]);
    while (round.open > 0 && !over.aborted) {
      await within(this.#o.clock, Infinity, this.#work(round), over);
      if (!over.aborted && !pending(round)) await this.#untilSilence(round, over);
    }
    for (const owned of those)
      if (this.#handing.get(owned.assignment)?.round === round) this.#handing.delete(owned.assignment);
  }

  /** A repeated acknowledgement, or one of another assignment, has no effect. */
  acknowledged({ assignment, ownerEpoch }: HandoffAck): void {
    const handing = this.#handing.get(assignment);
    if (handing) this.#step(handing, { kind: "acknowledged", ownerEpoch });
  }

  /** It is not ours any more, for another reason than an answer to an offer. */
  ended(owned: OwnedAssignment, how: OwnershipEnd): void {
    const handing = this.#handing.get(owned.assignment);
    if (handing?.owned === owned) this.#step(handing, { kind: how === "finished" ? "ended" : "lost" });
  }

  /** Offers assignments without an owner and waits for no answer: it spares the leader the search. */
  async offerReleased(those: readonly OwnedAssignment[], reason: HandoffReason): Promise<void> {
    await inBatches(those, (batch) => this.#send(batch, reason, null));
  }

  async #work(round: Round): Promise<void> {
    const { offer, read, orphan } = round.effects;
    const [offers, reads, orphans] = [offer.splice(0), read.splice(0), orphan.splice(0)];
    const work = [
      inBatches(offers, (batch) => this.#offer(batch, round)),
      inBatches(reads, (batch) => this.#read(batch)),
      inBatches(orphans, (batch) => this.#orphan(batch)),
    ];
    await Promise.all(work);
  }

  async #offer(batch: readonly Handing[], { reason }: Round): Promise<void> {
    const { clock, identity } = this.#o;
    try {
      const those = batch.filter((one) => this.#isOpen(one)).map(({ owned }) => owned);
      await this.#send(those, reason, identity);
      this.#troubled = false;
    } catch (error) {
      this.#trouble(error); // some may have been sent: the missing answer is handled like any other
    }
    const at = clock.monotonic();
    for (const one of batch) this.#step(one, { kind: "sent", at });
  }

  async #send(
    those: readonly OwnedAssignment[],
    reason: HandoffReason,
    from: NodeIdentity | null,
  ): Promise<void> {
    const at = new Date(this.#o.clock.now()).toISOString();
    const messages = those.map(({ assignment, ownerEpoch, counted, left }) => {
      const known = counted ? { jobs: left } : {};
      const body: Handoff = { assignment, from: from?.name ?? null, ownerEpoch, ...known, reason, at };
      return { key: `${assignment}`, body };
    });
    if (messages.length > 0) await this.#o.channels.send(queues.handoff, messages);
  }

  async #read(batch: readonly Handing[]): Promise<void> {
    await this.#try(batch, "read", async () => {
      const found = await this.#o.ownership.read(batch.map(({ owned }) => owned.assignment));
      for (const [at, one] of batch.entries()) {
        const row = found[at] ?? null;
        const truth = row && { incarnation: row.owner?.incarnation ?? null, ownerEpoch: row.ownerEpoch };
        this.#step(one, { kind: "truth", found: truth });
      }
    });
  }

  async #orphan(batch: readonly Handing[]): Promise<void> {
    await this.#try(batch, "orphan", async () => {
      const held = batch.map(({ owned: { assignment, ownerEpoch } }) => ({ assignment, ownerEpoch }));
      await this.#o.ownership.release(held, this.#o.identity, "orphan_pending");
      for (const one of batch) this.#step(one, { kind: "released" });
    });
  }

  async #try(batch: readonly Handing[], effect: "read" | "orphan", call: () => Promise<void>): Promise<void> {
    try {
      await call();
      this.#troubled = false;
    } catch (error) {
      this.#trouble(error);
      await this.#o.clock.sleep(STORE_RETRY_MS, batch[0]?.round.stop);
      for (const one of batch) if (this.#isOpen(one)) one.round.effects[effect].push(one);
    }
  }

  async #untilSilence(round: Round, over: AbortSignal): Promise<void> {
    const { clock } = this.#o;
    const ofRound = [...this.#handing.values()].filter((one) => one.round === round);
    let next = Infinity;
    for (const { state } of ofRound) if (state.phase === "offered") next = Math.min(next, state.answerBy);
    await clock.sleep(next - clock.monotonic(), over);
    const at = clock.monotonic();
    for (const one of ofRound) this.#step(one, { kind: "time", at });
  }

  #step(handing: Handing, event: HandoffEvent): void {
    if (!this.#isOpen(handing)) return;
    const { owned, round } = handing;
    const held = { incarnation: this.#o.identity.incarnation, ownerEpoch: owned.ownerEpoch };
    const { state, effect }: HandoffStep = stepHandoff(handing.state, event, held, round.rules);
    handing.state = state;
    if (effect) round.effects[effect].push(handing);
    if (state.phase !== "over") return;
    this.#handing.delete(owned.assignment);
    if (state.end !== "kept") this.#o.owned.end(owned, state.end === "finished" ? "finished" : "given");
    round.onOver?.(owned, state.end);
    if (--round.open === 0) round.through.abort();
  }

  #isOpen(handing: Handing): boolean {
    return this.#handing.get(handing.owned.assignment) === handing;
  }

  #trouble(error: unknown): void {
    if (!this.#troubled) this.#o.log.warn({ err: error }, "a handoff is held up; trying again");
    this.#troubled = true;
  }
}

function pending({ effects }: Round): boolean {
  return effects.offer.length + effects.read.length + effects.orphan.length > 0;
}

/** Receives the acknowledgements of nodes that took over what this node gave away. */
export class JobHandoffAckListener {
  readonly #o: OwnerContext;
  readonly #publisher: JobHandoffPublisher;
  #subscription: Subscription | null = null;

  constructor(context: OwnerContext, publisher: JobHandoffPublisher) {
    this.#o = context;
    this.#publisher = publisher;
  }

  start(): void {
    const { channels, identity } = this.#o;
    this.#subscription = channels.subscribe(topics.handoffAck(identity.name), ({ body }) =>
      this.#publisher.acknowledged(body as HandoffAck),
    );
  }

  async stop(): Promise<void> {
    await this.#subscription?.close();
    this.#subscription = null;
  }
}

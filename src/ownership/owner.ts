/**
 * The owner's side of push dispatch: which jobs' events are this node's business, and how they become another's.
 *
 *   job.assigned ──> AssignmentSubscriber ──┐
 *   job.handoff ───> JobHandoffSubscriber ──┴> OwnershipClaims ──> OwnedAssignments ──> AssignmentUpkeep
 *   job.N.status ──> JobEvents ──> EventWriter ──> store, receipts          |
 *                                                                           '──> JobHandoffPublisher ──> job.handoff
 *                                                     drain and rebalancing ──────────^
 */

import type { Channels } from "../channels/channels.ts";
import type { Membership } from "../coordination/coordination.ts";
import { acceptsWork, type DrainProgress, type NodeIdentity, type NodeStatus } from "../core/node.ts";
import type { Term } from "../core/term.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { NodeEvents } from "../platform/node-events.ts";
import type { Random } from "../platform/random.ts";
import { Lifecycle } from "../platform/service.ts";
import type { OwnershipStore } from "../store/ownership.ts";
import type { DrainOptions, DrainOutcome } from "./drain-service.ts";
import { buildOwnerParts, type OwnerParts } from "./owner-parts.ts";

export interface OwnerOptions {
  readonly ownership: OwnershipStore;
  readonly channels: Channels;
  readonly membership: Pick<Membership, "nodes">;
  readonly identity: NodeIdentity;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly events: NodeEvents;
  /** How this node shows itself. */
  readonly status: () => NodeStatus;
  /** Under which epoch it leads; null while it does not. */
  readonly leaderEpoch: () => number | null;
  /** The dispatch queues that it has used as a leader. */
  readonly dispatches: () => readonly string[];
  readonly settings: OwnerSettings;
}

export interface OwnerSettings {
  readonly heartbeatMs: number;
  /** How long an offer waits for its acknowledgement, and how many offers there are. */
  readonly ackMs: number;
  readonly tries: number;
  /** How long a drain waits for takers of what nobody answered for. */
  readonly orphanWaitMs: number;
  /** The longest that a drain may take in all. */
  readonly hardMs: number;
  readonly orphanCheckMs: number;
  readonly rebalance: boolean;
  readonly rebalanceMs: number;
  readonly rebalanceRatio: number;
}

/** What a stop waits for at most: messages in hand that a silent store holds up go to the next owner anyway. */
const LAST_WORDS_MS = 2_000;

/** How long a drain may take to learn how many jobs it has. */
const COUNT_MS = 1_000;

interface Draining {
  readonly done: Promise<DrainOutcome>;
  readonly hurry: AbortController;
  readonly cancel: AbortController;
}

export class Owner extends Lifecycle {
  readonly #o: OwnerOptions;
  readonly #parts: OwnerParts;
  #draining: Draining | null = null;

  constructor(options: OwnerOptions) {
    super();
    this.#o = options;
    this.#parts = buildOwnerParts(options, { taking: () => this.#taking });
  }

  /** Unfinished jobs that it owns. */
  get jobs(): number {
    return this.#parts.owned.jobs;
  }

  get assignments(): number {
    return this.#parts.owned.size;
  }

  /** Assignments that nobody owns, as the leader last found them. */
  orphans(): { readonly count: number; readonly oldestMs: number } {
    return this.#parts.orphans.orphans();
  }

  /** Of a drain that is under way or has ended; null after a resume. */
  progress(): DrainProgress | null {
    return this.#parts.drains.progress();
  }

  /** Stops taking, and hands over what it owns. A second call joins the first, and may hurry it. */
  drain(options: DrainOptions): Promise<DrainOutcome> {
    if (!this.#draining) {
      const [hurry, cancel] = [new AbortController(), new AbortController()];
      const done = this.#drain({ ...options, hurry: hurry.signal }, cancel.signal);
      this.#draining = { hurry, cancel, done };
    }
    const { done, hurry, cancel } = this.#draining;
    passOn(options.hurry, hurry);
    if (options.callOff) passOn(options.callOff, cancel);
    return done;
  }

  /** Takes assignments and offers again. A drain that is under way ends, and what it has not handed over stays. */
  async resume(): Promise<void> {
    this.#draining?.cancel.abort();
    await this.#draining?.done.catch(() => {});
    this.#draining = null;
    this.#parts.drains.resume();
    if (this.running) this.#open();
    await this.#parts.heartbeats.beat();
  }

  /** The leader's duty: finds what nobody owns. */
  orphanDuty(term: Term, signal: AbortSignal): Promise<void> {
    return this.#parts.orphans.duty(term, signal);
  }

  /** The leader's word that these lives have ended. Answers how many assignments belong to nobody now. */
  disown(lives: readonly NodeIdentity[], term: Term): Promise<number> {
    return this.#parts.orphans.disown(lives, term);
  }

  protected override onStart(): void {
    const { writer, claims, upkeep, health, acks, heartbeats, drains } = this.#parts;
    this.#draining = null;
    drains.resume();
    writer.start();
    claims.start();
    health.start();
    acks.start();
    upkeep.start();
    heartbeats.start();
    this.#open();
  }

  protected override async onStop(): Promise<void> {
    const { writer, claims, upkeep, owned, health, acks, heartbeats, drains } = this.#parts;
    const { clock } = this.#o;
    this.#draining?.hurry.abort();
    claims.stop();
    await this.#draining?.done.catch(() => {});
    await this.#close();
    if (owned.size > 0) await drains.releaseAll();
    writer.stop();
    for (const one of owned.all()) owned.end(one, "given");
    const waited = new AbortController();
    await Promise.race([owned.allClosed(), clock.sleep(LAST_WORDS_MS, waited.signal)]);
    waited.abort();
    await Promise.all([upkeep.stop(), acks.stop(), health.stop(), heartbeats.stop()]);
  }

  async #drain(options: DrainOptions, cancel: AbortSignal): Promise<DrainOutcome> {
    const { heartbeats, upkeep, drains, owned } = this.#parts;
    const { log } = this.#o;
    await this.#close();
    await heartbeats.beat();
    // A guess is good enough for a drain that cannot ask.
    if (owned.size > 0)
      await upkeep
        .count(options.hurry, COUNT_MS)
        .catch((error: unknown) => log.debug({ err: error }, "owned jobs could not be counted"));
    return drains.drain(options, cancel);
  }

  #open(): void {
    const { assigned, offers, rebalancer } = this.#parts;
    assigned.open();
    offers.open();
    rebalancer.start();
  }

  async #close(): Promise<void> {
    const { assigned, offers, rebalancer } = this.#parts;
    await Promise.all([assigned.close(), offers.close(), rebalancer.stop()]);
  }

  get #taking(): boolean {
    return this.running && !this.#draining && acceptsWork({ status: this.#o.status() });
  }
}

function passOn(from: AbortSignal, to: AbortController): void {
  if (from.aborted) to.abort();
  else from.addEventListener("abort", () => to.abort(), { once: true });
}

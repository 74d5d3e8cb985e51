/** Takes ownership: competes with the other nodes for new assignments, and writes what it takes into the store. */

import type { Subscription } from "../../channels/channels.ts";
import type { Assignment } from "../../channels/messages.ts";
import { queues } from "../../channels/channel-names.ts";
import type { AssignmentId, Held } from "../../store/ownership.ts";
import type { OwnerContext } from "./owner-context.ts";

export interface OwnershipClaim extends Held {
  /** Null when it is not known. */
  readonly jobs: number | null;
}

/** After this time a claim is returned to its queue: another node may reach the store. */
const PATIENCE_MS = 1_000;
/** New assignments taken together. More, and one node gets most of a burst while the others get nothing. */
const BATCH_MAX = 2;

export class OwnershipClaims {
  readonly #o: OwnerContext;
  /** Claims without an answer: they may be ours, and the next node that gets their messages would then leave them to us. */
  readonly #unanswered = new Set<AssignmentId>();
  #subscription: Subscription | null = null;
  #over = new AbortController();

  constructor(context: OwnerContext) {
    this.#o = context;
  }

  start(): void {
    this.#over = new AbortController();
  }

  stop(): void {
    this.#over.abort();
  }

  /** Competes for the assignments that the leader makes. A lost claim is fine: another node has it. */
  open(): void {
    this.#subscription ??= this.#o.channels.consume(
      queues.assigned,
      async (batch) => void (await this.claim(batch.map(({ body }) => body as Assignment))),
      { batchMax: BATCH_MAX },
    );
  }

  /** Takes no more; claims that are under way are completed. */
  async close(): Promise<void> {
    const subscription = this.#subscription;
    this.#subscription = null;
    await subscription?.close();
  }

  /** The epoch under which each is ours now; null for those that are not. */
  async claim(given: readonly OwnershipClaim[]): Promise<(number | null)[]> {
    const claims = given.filter((claim) => this.#readable(claim));
    if (claims.length === 0) return given.map(() => null);
    const { ownership, owned, identity } = this.#o;
    const ids = claims.map(({ assignment }) => assignment);
    let epochs: readonly (number | null)[];
    let ours: ReadonlyMap<AssignmentId, number>;
    try {
      epochs = await this.#call(() => ownership.own(claims, identity));
      ours = await this.#ours(ids.filter((_, at) => epochs[at] === null));
    } catch (error) {
      for (const id of ids) this.#unanswered.add(id);
      throw error;
    }
    const held = new Map<OwnershipClaim, number>();
    for (const [at, claim] of claims.entries()) {
      const { assignment, jobs } = claim;
      const granted = epochs[at] ?? null;
      const ownerEpoch = granted ?? ours.get(assignment);
      if (ownerEpoch === undefined) continue;
      owned.take({ assignment, ownerEpoch }, granted === null ? null : jobs);
      held.set(claim, ownerEpoch);
    }
    return given.map((claim) => held.get(claim) ?? null);
  }

  /** A malformed assignment is logged and dropped: it would be delivered for ever, and the rest of its batch with it. */
  #readable({ assignment, ownerEpoch }: OwnershipClaim): boolean {
    const readable = Number.isSafeInteger(assignment) && Number.isSafeInteger(ownerEpoch);
    if (!readable)
      this.#o.log.error({ assignment, ownerEpoch }, "an assignment is not readable; it is dropped");
    return readable;
  }

  async recall(): Promise<void> {
    const unanswered = [...this.#unanswered];
    for (const [assignment, ownerEpoch] of await this.#ours(unanswered))
      this.#o.owned.take({ assignment, ownerEpoch }, null);
    for (const id of unanswered) this.#unanswered.delete(id);
  }

  /** Assignments that are ours although this claim did not grant them: an earlier claim without an answer, or a repeated message. */
  async #ours(lost: readonly AssignmentId[]): Promise<ReadonlyMap<AssignmentId, number>> {
    if (lost.length === 0) return new Map();
    const { ownership, identity } = this.#o;
    const found = await this.#call(() => ownership.read(lost));
    return new Map(
      found
        .filter((one) => one?.owner?.incarnation === identity.incarnation)
        .map((one) => [one!.assignment, one!.ownerEpoch]),
    );
  }

  #call<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    return this.#o.retry.call(call, this.#over.signal, PATIENCE_MS);
  }
}

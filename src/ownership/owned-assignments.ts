import type { Subscription } from "../channels/channels.ts";
import type { AssignmentId, Held } from "../store/ownership.ts";

/** One assignment that this node owns. Of its jobs only the number is kept: an owner may have ten thousand. */
export interface OwnedAssignment extends Held {
  readonly assignment: AssignmentId;
  ownerEpoch: number;
  /** Jobs that have not ended. While it is not `counted`, a guess: the store is asked before it counts as none. */
  left: number;
  counted: boolean;
  /** Batches of events in hand, and all that there ever were: a count that the store gave meanwhile is not used. */
  writing: number;
  events: number;
  /** When the store is asked about it next, on our monotonic clock, and how long it waits after that. */
  lookAt: number;
  lookAfterMs: number;
  readonly subscription: Subscription;
}

/** `finished`: its jobs have ended. `lost`: another owns it, or nobody. `given`: we gave it away. */
export type OwnershipEnd = "finished" | "lost" | "given";

export interface OwnedAssignmentsOptions {
  /** Consumes what the workers of this assignment report. */
  readonly consume: (assignment: AssignmentId) => Subscription;
  readonly onTaken: (owned: OwnedAssignment) => void;
  readonly onEnded: (owned: OwnedAssignment, how: OwnershipEnd) => void;
}

/** What this node owns, as far as it knows; the store has the truth. */
export class OwnedAssignments {
  readonly #o: OwnedAssignmentsOptions;
  readonly #owned = new Map<AssignmentId, OwnedAssignment>();
  readonly #closing = new Map<OwnedAssignment, Promise<void>>();
  #jobs = 0;

  constructor(options: OwnedAssignmentsOptions) {
    this.#o = options;
  }

  /** Unfinished jobs of all of them. */
  get jobs(): number {
    return this.#jobs;
  }

  get size(): number {
    return this.#owned.size;
  }

  get(assignment: AssignmentId): OwnedAssignment | undefined {
    return this.#owned.get(assignment);
  }

  has(owned: OwnedAssignment): boolean {
    return this.#owned.get(owned.assignment) === owned;
  }

  all(): OwnedAssignment[] {
    return [...this.#owned.values()];
  }

  /** It is ours under this epoch. Told twice, or again under a higher epoch, it is the same one. */
  take({ assignment, ownerEpoch }: Held, jobs: number | null): OwnedAssignment {
    const there = this.#owned.get(assignment);
    if (there) {
      there.ownerEpoch = Math.max(there.ownerEpoch, ownerEpoch);
      return there;
    }
    const owned: OwnedAssignment = {
      assignment,
      ownerEpoch,
      left: jobs ?? 1,
      counted: jobs !== null,
      writing: 0,
      events: 0,
      lookAt: 0,
      lookAfterMs: 0,
      subscription: this.#o.consume(assignment),
    };
    this.#owned.set(assignment, owned);
    this.#jobs += owned.left;
    this.#o.onTaken(owned);
    return owned;
  }

  /** So many of its jobs have left it, and are counted no more. */
  left(owned: OwnedAssignment, jobs: number): void {
    this.recount(owned, Math.max(0, owned.left - jobs), owned.counted);
  }

  recount(owned: OwnedAssignment, left: number, counted = true): void {
    if (!this.has(owned)) return;
    this.#jobs += left - owned.left;
    owned.left = left;
    owned.counted = counted;
  }

  /** It is not ours any more; what is in hand of its events goes its way. False when it had ended before. */
  end(owned: OwnedAssignment, how: OwnershipEnd): boolean {
    if (!this.has(owned)) return false;
    this.#owned.delete(owned.assignment);
    this.#jobs -= owned.left;
    // A failed close is the channels' to tell, and theirs to mend.
    const closing = owned.subscription.close().catch(() => {});
    this.#closing.set(owned, closing);
    void closing.then(() => this.#closing.delete(owned));
    this.#o.onEnded(owned, how);
    return true;
  }

  /** Resolves when no event of this one is in hand any more. */
  closed(owned: OwnedAssignment): Promise<void> {
    return this.#closing.get(owned) ?? Promise.resolve();
  }

  /** The same for all that have ended. */
  async allClosed(): Promise<void> {
    while (this.#closing.size > 0) await Promise.all(this.#closing.values());
  }
}

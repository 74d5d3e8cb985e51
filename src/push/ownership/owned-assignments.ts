/** The assignments that this node owns, as far as it knows; the store is authoritative. Its services subscribe to changes. */

import type { AssignmentId, Held } from "../../store/ownership.ts";

/** One assignment that this node owns. Of its jobs only the number is kept: an owner may have ten thousand. */
export interface OwnedAssignment extends Held {
  readonly assignment: AssignmentId;
  ownerEpoch: number;
  /** Jobs that have not ended. While it is not `counted`, a guess: the store is asked before it counts as none. */
  left: number;
  counted: boolean;
  /** Batches of events that are being written, and all batches so far: a count that the store took meanwhile is not used. */
  writing: number;
  events: number;
  /** When the store is asked about it next, on our monotonic clock, and the delay until the time after that. */
  checkAt: number;
  checkAfterMs: number;
}

/** `finished`: its jobs have ended. `lost`: it has another owner, or none. `given`: we gave it away. */
export type OwnershipEnd = "finished" | "lost" | "given";

export interface OwnershipListener {
  taken?(owned: OwnedAssignment): void;
  /** Events of it were written; some of its jobs may have ended. */
  written?(owned: OwnedAssignment): void;
  /** `closed` waits for what this returns. It does not reject. */
  ended?(owned: OwnedAssignment, how: OwnershipEnd): Promise<void> | void;
}

export class OwnedAssignments {
  readonly #owned = new Map<AssignmentId, OwnedAssignment>();
  readonly #closing = new Map<OwnedAssignment, Promise<unknown>>();
  readonly #listeners: OwnershipListener[] = [];
  #jobs = 0;

  subscribe(listener: OwnershipListener): void {
    this.#listeners.push(listener);
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

  /** It is ours under this epoch. A second call, also with a higher epoch, concerns the same record. */
  take({ assignment, ownerEpoch }: Held, jobs: number | null): void {
    const known = this.#owned.get(assignment);
    if (known) {
      known.ownerEpoch = Math.max(known.ownerEpoch, ownerEpoch);
      return;
    }
    const counted = jobs !== null;
    const counts = { left: jobs ?? 1, counted, writing: 0, events: 0 };
    const owned: OwnedAssignment = { assignment, ownerEpoch, ...counts, checkAt: 0, checkAfterMs: 0 };
    this.#owned.set(assignment, owned);
    this.#jobs += owned.left;
    for (const listener of this.#listeners) listener.taken?.(owned);
  }

  written(owned: OwnedAssignment): void {
    for (const listener of this.#listeners) listener.written?.(owned);
  }

  left(owned: OwnedAssignment, jobs: number): void {
    this.recount(owned, Math.max(0, owned.left - jobs), owned.counted);
  }

  recount(owned: OwnedAssignment, left: number, counted = true): void {
    if (!this.has(owned)) return;
    this.#jobs += left - owned.left;
    owned.left = left;
    owned.counted = counted;
  }

  /** It is not ours any more; events that are being written are completed. False when it had ended before. */
  end(owned: OwnedAssignment, how: OwnershipEnd): boolean {
    if (!this.has(owned)) return false;
    this.#owned.delete(owned.assignment);
    this.#jobs -= owned.left;
    const closing = Promise.all(this.#listeners.map(async (listener) => listener.ended?.(owned, how)));
    this.#closing.set(owned, closing);
    void closing.then(() => this.#closing.delete(owned));
    return true;
  }

  async closed(owned: OwnedAssignment): Promise<void> {
    await this.#closing.get(owned);
  }

  async allClosed(): Promise<void> {
    while (this.#closing.size > 0) await Promise.all(this.#closing.values());
  }
}

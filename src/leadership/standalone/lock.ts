/**
 * The leader lock of a cluster with a single node. The epochs are in the store and only grow; the lease is in memory
 * and ends with the process.
 */

import type { NodeIdentity } from "../../core/node.ts";
import { sameTerm, type LeaderRole, type Term } from "../../core/leadership/term.ts";
import type { Platform } from "../../platform/platform.ts";
import type { TermStore } from "../../store/store.ts";
import { requireRunning, type LeaseLock, type Tenure } from "../coordination.ts";
import { Feed } from "../../platform/feed.ts";

interface StandaloneLockOptions extends Pick<Platform, "clock"> {
  readonly role: LeaderRole;
  readonly terms: TermStore;
  /** The coordination that this lock belongs to. */
  readonly owner: { readonly running: boolean };
}

interface Lease {
  readonly term: Term;
  /** Monotonic. */
  readonly until: number;
  readonly tenure: Pick<Tenure, "acquiredAt" | "leaseUntil">;
}

export class StandaloneLock implements LeaseLock {
  readonly #options: StandaloneLockOptions;
  readonly #hints = new Feed<void>();
  #lease: Lease | null = null;

  constructor(options: StandaloneLockOptions) {
    this.#options = options;
  }

  async acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term> {
    const { role, terms } = this.#options;
    requireRunning(this.#options.owner);
    const term = await terms.grant(role, candidate);
    // Two grants under way at once may answer in either order: the higher epoch stands.
    if (!this.#lease || term.epoch > this.#lease.term.epoch)
      this.#lease = this.#leased(term, ttlMs, this.#options.clock.now());
    return term;
  }

  async renew(term: Term, ttlMs: number): Promise<boolean> {
    requireRunning(this.#options.owner);
    const valid = this.#valid();
    if (!valid || !sameTerm(valid.term, term)) return false;
    this.#lease = this.#leased(term, ttlMs, valid.tenure.acquiredAt);
    return true;
  }

  async release(term: Term): Promise<void> {
    requireRunning(this.#options.owner);
    if (!this.#lease || !sameTerm(this.#lease.term, term)) return;
    // The epoch stays: an earlier grant that answers late must not take the place.
    this.#lease = { ...this.#lease, until: -Infinity };
    this.#hints.push();
  }

  async read(): Promise<Term | null> {
    requireRunning(this.#options.owner);
    return this.#valid()?.term ?? null;
  }

  async tenure(): Promise<Tenure | null> {
    requireRunning(this.#options.owner);
    const valid = this.#valid();
    return valid && { ...valid.term, ...valid.tenure };
  }

  released(signal: AbortSignal): AsyncIterable<void> {
    return this.#hints.follow(signal);
  }

  #leased(term: Term, ttlMs: number, acquiredAt: number): Lease {
    const { clock } = this.#options;
    const tenure = { acquiredAt, leaseUntil: clock.now() + ttlMs };
    return { term, until: clock.monotonic() + ttlMs, tenure };
  }

  #valid(): Lease | null {
    return this.#lease && this.#options.clock.monotonic() < this.#lease.until ? this.#lease : null;
  }
}

/** The leader lock of a single node. The epochs are in the store; the lease is in memory and ends with the process. */

import type { NodeIdentity } from "../../core/node.ts";
import { sameTerm, type LeaderRole, type Term } from "../../core/leadership/term.ts";
import type { Platform } from "../../platform/platform.ts";
import type { TermStore } from "../../store/store.ts";
import { BaseLock } from "../base-lock.ts";
import type { Tenure } from "../coordination.ts";

interface StandaloneLockOptions extends Pick<Platform, "clock"> {
  readonly role: LeaderRole;
  readonly terms: TermStore;
  readonly owner: { readonly running: boolean };
}

interface Lease {
  readonly tenure: Tenure;
  /** Monotonic. */
  readonly until: number;
}

export class StandaloneLock extends BaseLock {
  readonly #options: StandaloneLockOptions;
  #lease: Lease | null = null;

  constructor(options: StandaloneLockOptions) {
    super(options.owner);
    this.#options = options;
  }

  /** Does not wait for an earlier attempt, which a store that hangs may keep for ever. */
  override async acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term> {
    this.requireRunning();
    return this.attempt(candidate, ttlMs);
  }

  protected async attempt(candidate: NodeIdentity, ttlMs: number): Promise<Term> {
    const { role, terms, clock } = this.#options;
    const term = await terms.grant(role, candidate);
    // Two grants under way at once may answer in either order: the higher epoch stands.
    if (!this.#lease || term.epoch > this.#lease.tenure.epoch)
      this.#lease = this.#leased(term, ttlMs, clock.now());
    return term;
  }

  protected async extend(term: Term, ttlMs: number): Promise<boolean> {
    const valid = this.#valid();
    if (!valid || !sameTerm(valid.tenure, term)) return false;
    this.#lease = this.#leased(term, ttlMs, valid.tenure.acquiredAt);
    return true;
  }

  protected async giveUp(term: Term): Promise<void> {
    // The epoch stays: an earlier grant that answers late must not take the place.
    if (this.#lease && sameTerm(this.#lease.tenure, term)) this.#lease = { ...this.#lease, until: -Infinity };
  }

  protected async readTenure(): Promise<Tenure | null> {
    return this.#valid()?.tenure ?? null;
  }

  #leased(term: Term, ttlMs: number, acquiredAt: number): Lease {
    const { clock } = this.#options;
    return {
      tenure: { ...term, acquiredAt, leaseUntil: clock.now() + ttlMs },
      until: clock.monotonic() + ttlMs,
    };
  }

  #valid(): Lease | null {
    return this.#lease && this.#options.clock.monotonic() < this.#lease.until ? this.#lease : null;
  }
}

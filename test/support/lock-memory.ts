/** The reference lease lock: what every keeper must behave like, in the fewest lines. Time is the given clock's. */

import { Feed } from "../../src/platform/feed.ts";
import type { LeaseLock, Tenure } from "../../src/leadership/coordination.ts";
import type { NodeIdentity } from "../../src/core/node.ts";
import { heldBy, sameTerm, type LeaderRole, type Term } from "../../src/core/leadership/term.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { ManualClock } from "./manual-clock.ts";
import { ROLE, type OpenLock } from "./lock-world.ts";

/** What the backend would keep; outlives the lock objects that work on it. */
export interface LockState {
  /** The highest epoch ever granted. */
  epoch: number;
  term: Term | null;
  acquiredAt: number;
  until: number;
  readonly hints: Feed<void>;
}

export function newLockState(): LockState {
  return { epoch: 0, term: null, acquiredAt: 0, until: -Infinity, hints: new Feed() };
}

export class MemoryLeaseLock implements LeaseLock {
  protected readonly role: LeaderRole;
  protected readonly clock: Clock;
  protected readonly state: LockState;

  constructor(role: LeaderRole, clock: Clock, state: LockState = newLockState()) {
    this.role = role;
    this.clock = clock;
    this.state = state;
  }

  async acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    const valid = this.valid();
    if (valid && !heldBy(valid, candidate)) return null;
    return this.grant(candidate, ttlMs);
  }

  async renew(term: Term, ttlMs: number): Promise<boolean> {
    const valid = this.valid();
    if (!valid || !sameTerm(valid, term)) return false;
    this.state.until = this.clock.monotonic() + ttlMs;
    return true;
  }

  async release(term: Term): Promise<void> {
    if (this.state.term && sameTerm(this.state.term, term)) this.free();
  }

  async read(): Promise<Term | null> {
    return this.valid();
  }

  async tenure(): Promise<Tenure | null> {
    const term = this.valid();
    return term && { ...term, acquiredAt: this.state.acquiredAt, leaseUntil: this.state.until };
  }

  released(signal: AbortSignal): AsyncIterable<void> {
    return this.state.hints.follow(signal);
  }

  protected valid(): Term | null {
    return this.clock.monotonic() < this.state.until ? this.state.term : null;
  }

  protected grant({ name: leader, incarnation }: NodeIdentity, ttlMs: number): Term {
    this.state.epoch += 1;
    return this.hold({ role: this.role, leader, incarnation, epoch: this.state.epoch }, ttlMs);
  }

  protected hold(term: Term, ttlMs: number): Term {
    const acquiredAt = this.clock.monotonic();
    Object.assign(this.state, { term, acquiredAt, until: acquiredAt + ttlMs });
    return term;
  }

  protected free(): void {
    this.state.term = null;
    this.state.until = -Infinity;
    this.state.hints.push();
  }
}

/** Opens the reference lock, or a broken kind of it, for the contract. */
export function openMemoryLock(Kind: typeof MemoryLeaseLock): OpenLock {
  return async () => {
    const clock = new ManualClock();
    const state = newLockState();
    return {
      lock: new Kind(ROLE, clock, state),
      ttlMs: 1_000,
      rounds: 30, // as many as on the servers: enough to find out the broken ones
      elapse: (ms) => clock.advance(ms),
      reopen: async () => new Kind(ROLE, clock, state),
      close: async () => {},
    };
  };
}

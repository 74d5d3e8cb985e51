/**
 * The leader lock of one role.
 *
 * Redis decides who leads, and the store who may write: a grant of Redis counts only when the store has admitted its epoch, which
 * it does for none that is below or beside one that it knows. So an epoch never goes back, whatever Redis forgets.
 *
 * A standby waits for the end of the lease, for a release (a notification), or for the end of the leader's life: its connection to
 * Redis (control-session.ts). The last is only evidence. A leader that lost its connection and lives may be superseded; it finds
 * out with its next renewal, and until then the store refuses its writes.
 */

import { BatonError } from "../../core/errors.ts";
import type { NodeIdentity } from "../../core/node.ts";
import { sameTerm, type LeaderRole, type Term, termFields } from "../../core/term.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { TermStore } from "../../store/store.ts";
import type { LeaseLock, Tenure } from "../coordination.ts";
import { Feed } from "../feed.ts";
import type { ControlSession } from "./control-session.ts";
import { LeaderScripts, type Seat } from "./leader-scripts.ts";
import type { LifeWatch } from "./life-watch.ts";

export interface RedisLockOptions {
  readonly role: LeaderRole;
  readonly control: ControlSession;
  readonly terms: TermStore;
  readonly watch: LifeWatch;
  readonly clock: Clock;
  readonly log: Log;
  /** Throws when the coordination does not run. */
  readonly usable: () => void;
}

/** A grant below what the store knows is followed by one above it; more tries mean that others are granted terms meanwhile. */
const ADMIT_TRIES = 3;
/** Timers may fire a little early. */
const TIMER_SLACK_MS = 5;

export class RedisLock implements LeaseLock {
  readonly #o: RedisLockOptions;
  readonly #scripts: LeaderScripts;
  readonly #hints = new Feed<void>();
  /** The highest epoch that was seen here; what the store remembers is asked for once. */
  #floor: number | null = null;
  /** A life on which the current term stands and that was seen to end. */
  #gone = "";
  /** A term of ours that the store has a successor of. */
  #superseded: Term | null = null;
  #turn: Promise<unknown> = Promise.resolve();
  #callOffLapse = (): void => {};
  #watching: { readonly life: string; readonly end: () => void } | null = null;

  constructor(options: RedisLockOptions) {
    this.#o = options;
    this.#scripts = new LeaderScripts(options.control, options.role);
  }

  acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    // One at a time: of two terms of one candidate, the store would admit the later one first.
    const result = this.#turn.then(() => this.#acquire(candidate, ttlMs));
    this.#turn = result.catch(() => {});
    return result;
  }

  async renew(term: Term, ttlMs: number): Promise<boolean> {
    this.#o.usable();
    if (this.#superseded && sameTerm(this.#superseded, term)) return false;
    const deadlineMs = this.#deadlineMs(ttlMs);
    const asked = this.#scripts.renew(term, ttlMs, deadlineMs);
    void this.#compare(term);
    const renewed = await asked;
    if (renewed === null) throw tooLate(deadlineMs);
    return renewed && !(this.#superseded && sameTerm(this.#superseded, term));
  }

  async release(term: Term): Promise<void> {
    this.#o.usable();
    await this.#scripts.release(term);
    this.hint();
  }

  async read(): Promise<Term | null> {
    const tenure = await this.tenure();
    if (!tenure) return null;
    const { role, leader, incarnation, epoch } = tenure;
    return { role, leader, incarnation, epoch };
  }

  async tenure(): Promise<Tenure | null> {
    this.#o.usable();
    const tenure = await this.#scripts.tenure();
    if (tenure) this.#note(tenure.epoch);
    return tenure;
  }

  released(signal: AbortSignal): AsyncIterable<void> {
    return this.#hints.follow(signal);
  }

  hint(): void {
    this.#hints.push();
  }

  async stop(): Promise<void> {
    await this.#turn;
    this.#callOffLapse();
    this.#watchNobody();
    this.#superseded = null;
    this.#gone = "";
  }

  async #acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    this.#o.usable();
    this.#callOffLapse();
    const { role, terms } = this.#o;
    const deadlineMs = this.#deadlineMs(ttlMs);
    this.#floor ??= (await terms.read(role))?.epoch ?? 0;
    for (let tries = 0; tries < ADMIT_TRIES; tries++) {
      const grant = await this.#scripts.grant({
        candidate,
        ttlMs,
        floor: this.#floor,
        gone: this.#gone,
        deadlineMs,
      });
      if (!grant) throw tooLate(deadlineMs);
      if (!grant.granted) {
        this.#wait(grant.seat);
        return null;
      }
      if (await this.#admitted(grant.term)) {
        this.#watchNobody();
        return grant.term;
      }
    }
    throw new BatonError("STORE_UNAVAILABLE", `others were granted ${role} while the store was asked`);
  }

  /** Whether the store takes the term. If it does not answer, Redis must not keep the others out for it. */
  async #admitted(term: Term): Promise<boolean> {
    const { terms, log } = this.#o;
    this.#note(term.epoch);
    try {
      if (await terms.admit(term)) return true;
      const newest = await terms.read(term.role);
      log.warn(
        { ...termFields(term), newest: newest?.epoch },
        "Redis had forgotten the last epoch; asking for a higher one",
      );
      this.#note(newest?.epoch ?? 0);
      return false;
    } catch (error) {
      await this.#scripts.release(term).catch(() => {}); // it runs out by itself
      throw error;
    }
  }

  /** Another's lease is valid. Asks for a hint at the time when it may be taken, or when its holder's life ends. */
  #wait({ epoch, leftMs, life }: Seat): void {
    this.#note(epoch);
    const { clock, control } = this.#o;
    this.#watch(control.life === "" ? "" : life);
    // Whoever does not ask again by then does not stand any more.
    this.#callOffLapse = clock.after(leftMs + TIMER_SLACK_MS, () => {
      this.#watchNobody();
      this.hint();
    });
  }

  /** A watch goes on from attempt to attempt: a new one would have to see the life first. */
  #watch(life: string): void {
    if (life !== "" && this.#watching?.life === life) return;
    this.#watchNobody();
    if (life === "") return;
    const end = this.#o.watch.watch(life, () => {
      this.#watching = null;
      this.#gone = life;
      this.hint();
    });
    this.#watching = { life, end };
  }

  #watchNobody(): void {
    this.#watching?.end();
    this.#watching = null;
    this.#gone = "";
  }

  /**
   * Behind a failover two servers may each have a leader, and each of them renews. The store knows which one may write; the other is
   * told here. Not waited for: a store that is away says nothing about who leads.
   */
  async #compare(term: Term): Promise<void> {
    try {
      const newest = await this.#o.terms.read(term.role);
      if (!newest || newest.epoch < term.epoch || sameTerm(newest, term)) return;
      this.#note(newest.epoch);
      this.#superseded = term;
      this.hint();
    } catch {
      // It is asked again with the next renewal.
    }
  }

  #note(epoch: number): void {
    if (this.#floor !== null) this.#floor = Math.max(this.#floor, epoch);
  }

  /** A third of the lease at most, so that a renewal which hangs can be followed by another. */
  #deadlineMs(ttlMs: number): number {
    return Math.min(this.#o.control.commandMs, Math.ceil(ttlMs / 3));
  }
}

function tooLate(deadlineMs: number): BatonError {
  return new BatonError(
    "DEADLINE",
    `Redis was reached later than ${deadlineMs} ms after it was asked; nothing was done there`,
  );
}

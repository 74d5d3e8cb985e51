/**
 * The leader lock of one role in PostgreSQL.
 *
 * A row with a lease decides (leader-record.ts). An advisory lock makes failover fast: a standby gets it at the moment
 * the leader's session ends. Holding it proves that a term which held it before is over; an expired lease is taken with
 * or without it. A holder that was paused beyond its lease is evicted: its sessions are ended, because one of them may be
 * inside a transaction that prevents the next term. Behind a pooler there is only the row.
 */

import type { NodeIdentity } from "../../core/node.ts";
import { sameTerm, type LeaderRole, type Term } from "../../core/leadership/term.ts";
import { isNotPermitted } from "../../platform/drivers/postgres/errors.ts";
import type { Queryable } from "../../platform/drivers/postgres/postgres.ts";
import { applicationPrefix } from "../../platform/drivers/postgres/session.ts";
import type { Platform } from "../../platform/platform.ts";
import { BaseLock } from "../base-lock.ts";
import type { Tenure } from "../coordination.ts";
import { leaderLock, type AdvisoryLock, type AdvisoryLocks } from "./advisory-lock.ts";
import type { ControlSession } from "./control-session.ts";
import { EVICT_AFTER_MS, LeaderRecord, type LeaseRecord } from "./leader-record.ts";

interface PostgresLockOptions extends Pick<Platform, "identity" | "clock" | "log"> {
  readonly role: LeaderRole;
  readonly control: ControlSession;
  readonly advisoryLocks: AdvisoryLocks;
  readonly owner: { readonly running: boolean };
}

/** A free lock is ours within a millisecond or two. Shorter, and a healthy candidate looks stuck on a busy machine. */
const FREE_MS = 30;
/** How long the lock may be held by a node that does not use it, before we take the seat without it. */
const STUCK_MS = 150;
/** Sessions that were ended are gone in a few ms; a busy server takes longer. */
const EVICTED_MS = 300;
/** An elector asks within a turn of the hint. A node that does not ask for so long is no candidate any more. */
const UNUSED_MS = 500;
/** Longer, and a standby whose hint was lost asks later. Shorter means more statements while nothing happens. */
const QUIET_MS = 2_000;
/** Timers may fire a little early. */
const TIMER_SLACK_MS = 5;

export class PostgresLock extends BaseLock {
  readonly #o: PostgresLockOptions;
  readonly #rows: LeaderRecord;
  readonly #key: bigint;
  #advisory: AdvisoryLock | null = null;
  /** The term of ours that stands on the advisory lock: over in the moment in which the session breaks. */
  #standing: Term | null = null;
  #broken: Term | null = null;
  evictionRefused = false;
  #callOffLapse = (): void => {};
  #callOffUnused = (): void => {};

  constructor(options: PostgresLockOptions) {
    super(options.owner);
    this.#o = options;
    this.#rows = new LeaderRecord(options.control, options.role);
    this.#key = leaderLock(options.role, options.control.schema);
  }

  protected async extend(term: Term, ttlMs: number): Promise<boolean> {
    if (sameTerm(this.#broken, term)) return false;
    const advisory = this.#advisory;
    // A term that began without the lock stands on it from now on.
    const stands = this.#standing === null || sameTerm(this.#standing, term);
    const locked = advisory !== null && advisory.held && stands;
    if (locked) this.#callOffUnused();
    const renewed = await this.#rows.renew(this.#session(locked), term, ttlMs, locked);
    if (locked && renewed) this.#standOn(advisory, term);
    if (!renewed && sameTerm(this.#standing, term)) this.#standing = null;
    return renewed && !sameTerm(this.#broken, term);
  }

  protected async giveUp(term: Term): Promise<void> {
    const advisory = this.#advisory;
    if (advisory && sameTerm(this.#standing, term)) {
      this.#standing = null;
      // In one go, and in this order: who is served next finds the lease ended.
      await Promise.all([this.#rows.release(this.#session(true), term), advisory.unlock()]);
    } else {
      await this.#rows.release(this.#session(false), term);
    }
  }

  protected readTenure(): Promise<Tenure | null> {
    return this.#rows.tenure();
  }

  /** Grants and releases are notified, the end of a leader frees its lock, and a timer watches the lease. */
  quietMs(): number {
    const { control } = this.#o;
    return control.listening && this.#advisory?.wanted && !this.#advisory.held ? QUIET_MS : 0;
  }

  async stop(): Promise<void> {
    this.#callOffLapse();
    this.#callOffUnused();
    // In this order: what is asked of a silent server ends with its session, and not with its deadline.
    await this.#o.advisoryLocks.stop();
    await this.turn.idle();
    this.#standing = null;
    this.#broken = null;
  }

  /** What the advisory lock proves to one attempt is used up by its grant. */
  protected async attempt(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    this.#callOffLapse();
    this.#callOffUnused();
    const advisory = this.#standInLine();
    if (advisory?.held) {
      const term = await this.#grant(advisory, candidate, ttlMs);
      if (term) return term;
    }
    const seat = await this.#rows.look();
    if (seat.leftMs > 0 && !this.#mayAskAgain(seat, candidate)) {
      await this.#wait(seat, advisory);
      return null;
    }
    if (advisory) await this.#clear(seat, advisory);
    return this.#grant(advisory, candidate, ttlMs);
  }

  async #grant(advisory: AdvisoryLock | null, candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    const locked = advisory?.held ?? false;
    const evidence = locked && this.#standing === null;
    const term = await this.#rows.grant(this.#session(locked), { candidate, ttlMs, locked, evidence });
    if (term && advisory && locked) this.#standOn(advisory, term);
    return term;
  }

  /** Statements about a term that stands on the advisory lock go through its session. */
  #session(locked: boolean): Queryable {
    return locked ? this.#o.advisoryLocks : this.#o.control;
  }

  /** The session may have broken while the answer was on its way. */
  #standOn(advisory: AdvisoryLock, term: Term): void {
    if (advisory.held) this.#standing = term;
    else this.#broken = term;
  }

  #mayAskAgain(seat: LeaseRecord, candidate: NodeIdentity): boolean {
    if (seat.leader !== candidate.name || seat.incarnation !== candidate.incarnation) return false;
    // Without the lock on which that term stood, another node may have been served already.
    return !seat.locked || this.#advisory?.held === true;
  }

  async #wait(seat: LeaseRecord, advisory: AdvisoryLock | null): Promise<void> {
    const { clock, identity } = this.#o;
    const graceMs = advisory ? EVICT_AFTER_MS : 0;
    this.#callOffLapse = clock.after(seat.leftMs + graceMs + TIMER_SLACK_MS, () => this.hint());
    if (!advisory) return;
    if (advisory.held && this.#standing === null) {
      // The leader's term does not stand on the lock; it is in line behind us, and better off with it.
      await advisory.unlock();
    } else if (seat.locked && seat.incarnation === identity.incarnation && this.#standing === null) {
      const ours = [this.#o.advisoryLocks.pid];
      const prefix = applicationPrefix(identity.incarnation);
      await this.#evict(() => this.#rows.evictOldSelf(this.#key, ours, prefix));
    }
  }

  /** The seat may be taken: gets the advisory lock for it, by force if it must be. Returns in any case. */
  async #clear(seat: LeaseRecord, advisory: AdvisoryLock): Promise<void> {
    const { identity, control, advisoryLocks, log, role } = this.#o;
    if (await advisory.heldWithin(FREE_MS)) return;
    if (!seat.free && seat.incarnation !== identity.incarnation) {
      const graceMs = EVICT_AFTER_MS + seat.leftMs;
      if (graceMs > 0 && (await advisory.heldWithin(graceMs))) return;
      const prefix = applicationPrefix(seat.incarnation);
      const ended = await this.#evict(() => this.#rows.evictLife(seat, prefix));
      if (ended > 0) {
        log.warn(
          { leaderRole: role, leader: seat.leader, epoch: seat.epoch, sessions: ended },
          "evicted a leader that did not renew its lease",
        );
        if (await advisory.heldWithin(EVICTED_MS)) return;
      }
    }
    if (await advisory.heldWithin(STUCK_MS)) return;
    const ours = [control.pid, advisoryLocks.pid];
    const ended = await this.#evict(() => this.#rows.evictHolder(seat, this.#key, ours));
    if (ended > 0) await advisory.heldWithin(EVICTED_MS);
  }

  /** Where it is refused, the lease alone decides. */
  async #evict(evict: () => Promise<number>): Promise<number> {
    try {
      const ended = await evict();
      this.evictionRefused = false;
      return ended;
    } catch (error) {
      this.evictionRefused = isNotPermitted(error);
      this.#o.log.warn(
        { leaderRole: this.#o.role, err: error },
        "could not end the sessions of a former leader",
      );
      return 0;
    }
  }

  #standInLine(): AdvisoryLock | null {
    const { control, clock } = this.#o;
    if (control.pooled) return null;
    this.#advisory ??= this.#o.advisoryLocks.lock(this.#key, {
      onHeld: () => {
        this.#callOffUnused();
        this.#callOffUnused = clock.after(UNUSED_MS, () => this.stepBack());
        this.hint();
      },
      onLost: () => {
        if (this.#standing) this.#broken = this.#standing;
        this.#standing = null;
        this.hint();
      },
    });
    this.#advisory.want();
    return this.#advisory;
  }

  /** Others must not wait behind a node that is no candidate any more. */
  protected override stepBack(): void {
    void this.turn
      .run(async () => {
        if (!this.#standing) await this.#advisory?.leave();
      })
      .catch(() => {}); // the session is gone, and our place in the line with it
  }
}

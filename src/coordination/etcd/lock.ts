/**
 * The leader lock of one role.
 *
 * Etcd decides who leads, and the store who may write: a grant of etcd counts only when the store has admitted its epoch, which it
 * does for none that is below or beside one that it knows. Epochs lie above the revision that etcd had before the grant, and
 * above what the store remembers: one is enough to keep them growing, so an etcd that was restored or set up anew does no harm.
 *
 * A standby waits for the end of the key (a release, the end of etcd's lease, an operator), which a watch tells at once, or for the
 * end of our own lease (stillness.ts), which may be shorter than etcd can count. A renewal that lay in an etcd which stood still
 * may be carried out late; it prolongs the wait of the others, and revives nothing for its sender, who counts from when he sent it.
 */

import { BatonError } from "../../core/errors.ts";
import type { NodeIdentity } from "../../core/node.ts";
import { heldBy, sameTerm, type LeaderRole, type Term, termFields } from "../../core/term.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { TermStore } from "../../store/store.ts";
import type { LeaseLock, Tenure } from "../coordination.ts";
import { Feed } from "../feed.ts";
import type { ControlSession } from "./control-session.ts";
import { LeaderKeys, type Seat, type SeatLook } from "./leader-keys.ts";
import { Stillness } from "./stillness.ts";

export interface EtcdLockOptions {
  readonly role: LeaderRole;
  readonly control: ControlSession;
  readonly terms: TermStore;
  readonly clock: Clock;
  readonly log: Log;
  /** Throws when the coordination does not run. */
  readonly usable: () => void;
}

/** A grant below what the store knows is followed by one above it; more tries mean that others are granted terms meanwhile. */
const ADMIT_TRIES = 3;
/** Timers may fire a little early. */
const TIMER_SLACK_MS = 5;

export class EtcdLock implements LeaseLock {
  readonly #o: EtcdLockOptions;
  readonly #keys: LeaderKeys;
  readonly #stillness: Stillness;
  readonly #hints = new Feed<void>();
  /** The highest epoch that was seen here; what the store remembers is asked for once. */
  #floor: number | null = null;
  /** What was granted or renewed here last. */
  #own: Seat | null = null;
  /** A term of ours that the store has a successor of. */
  #superseded: Term | null = null;
  #turn: Promise<unknown> = Promise.resolve();
  #callOffLapse = (): void => {};

  constructor(options: EtcdLockOptions) {
    this.#o = options;
    this.#keys = new LeaderKeys(options.control, options.role);
    this.#stillness = new Stillness(options.control.time);
  }

  acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    // One at a time: of two terms of one candidate, the store would admit the later one first.
    const result = this.#turn.then(() => this.#acquire(candidate, ttlMs));
    this.#turn = result.catch(() => {});
    return result;
  }

  async renew(term: Term, ttlMs: number): Promise<boolean> {
    this.#o.usable();
    if (this.#isSuperseded(term)) return false;
    const deadlineMs = this.#deadlineMs(ttlMs);
    void this.#compare(term);
    const seat = await this.#seatOf(term, deadlineMs);
    const renewed = seat && (await this.#keys.renew(seat, ttlMs, deadlineMs));
    if (renewed) this.#own = renewed;
    return renewed !== null && !this.#isSuperseded(term);
  }

  async release(term: Term): Promise<void> {
    this.#o.usable();
    const seat = await this.#seatOf(term);
    if (seat) await this.#keys.release(seat);
    this.hint();
  }

  async read(): Promise<Term | null> {
    return (await this.#valid())?.term ?? null;
  }

  /** Its times are those of the holder's clock. */
  async tenure(): Promise<Tenure | null> {
    const seat = await this.#valid();
    if (!seat) return null;
    const { term, acquiredAt, renewedAt, ttlMs } = seat;
    return { ...term, acquiredAt, leaseUntil: renewedAt + ttlMs };
  }

  released(signal: AbortSignal): AsyncIterable<void> {
    return this.#hints.follow(signal);
  }

  hint(): void {
    this.#hints.push();
  }

  /** The watch tells of the key. */
  told(revision: number, deleted: boolean): void {
    if (deleted) this.hint();
    else this.#stillness.hear(this.#o.role, revision);
  }

  async stop(): Promise<void> {
    await this.#turn;
    this.#callOffLapse();
    this.#superseded = null;
    this.#own = null;
  }

  async #acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    this.#o.usable();
    this.#callOffLapse();
    const { role, terms } = this.#o;
    const deadlineMs = this.#deadlineMs(ttlMs);
    this.#floor ??= (await terms.read(role))?.epoch ?? 0;
    for (let tries = 0; tries < ADMIT_TRIES; tries++) {
      const seen = await this.#keys.look(deadlineMs);
      const { seat } = seen;
      if (seat && !heldBy(seat.term, candidate) && this.#leftMs(seat) > 0) {
        this.#wait(seat);
        return null;
      }
      const epoch = this.#nextEpoch(seen);
      const granted = await this.#keys.grant({ candidate, ttlMs, epoch, seen, deadlineMs });
      if (!granted) continue;
      this.#leftMs(granted);
      if (!(await this.#admitted(granted))) continue;
      this.#own = granted;
      return granted.term;
    }
    throw new BatonError("STORE_UNAVAILABLE", `others were granted ${role} while the store was asked`);
  }

  #nextEpoch({ seat, revision }: SeatLook): number {
    return Math.max(this.#floor ?? 0, revision, seat?.term.epoch ?? 0) + 1;
  }

  /** Whether the store takes the term. If it does not answer, etcd must not keep the others out for it. */
  async #admitted(seat: Seat): Promise<boolean> {
    const { terms, log } = this.#o;
    const { term } = seat;
    this.#note(term.epoch);
    try {
      if (await terms.admit(term)) return true;
      const newest = await terms.read(term.role);
      log.warn(
        { ...termFields(term), newest: newest?.epoch },
        "etcd does not know the last epoch; asking for a higher one",
      );
      this.#note(newest?.epoch ?? 0);
      return false;
    } catch (error) {
      await this.#keys.release(seat).catch(() => {}); // it runs out by itself
      throw error;
    }
  }

  /** Another's lease is valid. Asks for a hint at the time when it may be taken. */
  #wait(seat: Seat): void {
    this.#note(seat.term.epoch);
    this.#callOffLapse = this.#o.clock.after(this.#leftMs(seat) + TIMER_SLACK_MS, () => this.hint());
  }

  async #valid(): Promise<Seat | null> {
    this.#o.usable();
    const { seat } = await this.#keys.look();
    if (!seat) return null;
    this.#note(seat.term.epoch);
    return this.#leftMs(seat) > 0 ? seat : null;
  }

  /** Where this very term sits, or null when it does not any more. */
  async #seatOf(term: Term, deadlineMs?: number): Promise<Seat | null> {
    if (this.#own && sameTerm(this.#own.term, term)) return this.#own;
    const { seat } = await this.#keys.look(deadlineMs);
    return seat && sameTerm(seat.term, term) ? seat : null;
  }

  #leftMs({ revision, ttlMs }: Seat): number {
    return ttlMs - this.#stillness.ageMs(this.#o.role, revision);
  }

  /**
   * Nodes that were given two different etcds each have a leader there, and each of them renews. The store knows which one may
   * write; the other is told here. Not waited for: a store that is away says nothing about who leads.
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

  #isSuperseded(term: Term): boolean {
    return this.#superseded !== null && sameTerm(this.#superseded, term);
  }

  #note(epoch: number): void {
    if (this.#floor !== null) this.#floor = Math.max(this.#floor, epoch);
  }

  /** A quarter of the lease at most: after a renewal that hangs there is time for another one, at another member. */
  #deadlineMs(ttlMs: number): number {
    return Math.min(this.#o.control.commandMs, Math.ceil(ttlMs / 4));
  }
}

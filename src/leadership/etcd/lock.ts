/**
 * The leader lock of one role in etcd.
 *
 * An epoch is higher than the revision of etcd before the grant, and higher than the epoch in the store. Either alone
 * keeps epochs growing, so an etcd that was restored or set up anew does no harm.
 *
 * A standby waits for the end of the key (a release, the end of etcd's lease, an operator), which a watch reports at
 * once, or for the end of our own lease (unchanged-timer.ts), which may be shorter than etcd can count. A renewal that
 * was delayed in a stalled etcd may take effect late: it prolongs the wait of the others, but revives nothing for its
 * sender, which counts from the time of sending.
 */

import { heldBy, sameTerm, type Term } from "../../core/leadership/term.ts";
import { AdmittedLock, type AdmittedLockOptions, type GrantRequest } from "../admitted-lock.ts";
import type { Tenure } from "../coordination.ts";
import type { ControlSession } from "./control-session.ts";
import { LeaderRecord, type LeaseRecord } from "./leader-record.ts";
import { UnchangedTimer } from "./unchanged-timer.ts";

export interface EtcdLockOptions extends AdmittedLockOptions {
  readonly control: ControlSession;
}

export class EtcdLock extends AdmittedLock<LeaseRecord> {
  protected readonly outdated = "etcd does not know the last epoch";
  readonly #o: EtcdLockOptions;
  readonly #keys: LeaderRecord;
  readonly #stillness: UnchangedTimer;
  /** What was granted or renewed here last. */
  #own: LeaseRecord | null = null;

  constructor(options: EtcdLockOptions) {
    super(options);
    this.#o = options;
    this.#keys = new LeaderRecord(options.control, options.role);
    this.#stillness = new UnchangedTimer(options.control.time);
  }

  /** The watch tells of the key. */
  told(revision: number, deleted: boolean): void {
    if (deleted) this.hint();
    else this.#stillness.hear(this.#o.role, revision);
  }

  protected async tryGrant({
    candidate,
    ttlMs,
    floor,
  }: GrantRequest): Promise<LeaseRecord | "held" | "again"> {
    const deadlineMs = this.#deadlineMs(ttlMs);
    const seen = await this.#keys.look(deadlineMs);
    const { seat, revision } = seen;
    if (seat && !heldBy(seat.term, candidate) && this.#leftMs(seat) > 0) {
      this.wait(seat.term.epoch, this.#leftMs(seat));
      return "held";
    }
    const epoch = Math.max(floor, revision, seat?.term.epoch ?? 0) + 1;
    const granted = await this.#keys.grant({ candidate, ttlMs, epoch, seen, deadlineMs });
    if (!granted) return "again";
    this.#leftMs(granted);
    return granted;
  }

  protected onAdmitted(seat: LeaseRecord): void {
    this.#own = seat;
  }

  protected giveBack(seat: LeaseRecord): Promise<void> {
    return this.#keys.release(seat);
  }

  protected async tryRenew(term: Term, ttlMs: number): Promise<boolean> {
    const deadlineMs = this.#deadlineMs(ttlMs);
    const seat = await this.#seatOf(term, deadlineMs);
    const renewed = seat && (await this.#keys.renew(seat, ttlMs, deadlineMs));
    if (renewed) this.#own = renewed;
    return renewed !== null;
  }

  protected async leave(term: Term): Promise<void> {
    const seat = await this.#seatOf(term);
    if (seat) await this.#keys.release(seat);
  }

  /** Its times are those of the holder's clock. */
  protected async look(): Promise<Tenure | null> {
    const { seat } = await this.#keys.look();
    if (!seat) return null;
    this.note(seat.term.epoch);
    if (this.#leftMs(seat) <= 0) return null;
    const { term, acquiredAt, renewedAt, ttlMs } = seat;
    return { ...term, acquiredAt, leaseUntil: renewedAt + ttlMs };
  }

  protected onStop(): void {
    this.#own = null;
  }

  /** Where this very term sits, or null when it does not any more. */
  async #seatOf(term: Term, deadlineMs?: number): Promise<LeaseRecord | null> {
    if (this.#own && sameTerm(this.#own.term, term)) return this.#own;
    const { seat } = await this.#keys.look(deadlineMs);
    return seat && sameTerm(seat.term, term) ? seat : null;
  }

  #leftMs({ revision, ttlMs }: LeaseRecord): number {
    return ttlMs - this.#stillness.ageMs(this.#o.role, revision);
  }

  /** A quarter of the lease at most: after a renewal that hangs there is time for another one, at another member. */
  #deadlineMs(ttlMs: number): number {
    return Math.min(this.#o.control.commandMs, Math.ceil(ttlMs / 4));
  }
}

/**
 * The leader lock of one role in etcd.
 *
 * An epoch is higher than the revision of etcd before the grant, and higher than the epoch in the store. Either alone
 * keeps epochs growing, so an etcd that was restored or set up anew does no harm.
 *
 * A standby waits for the end of the key, which a watch reports at once, or for the end of our own lease, which may be
 * shorter than etcd can count. A renewal that was delayed in a stalled etcd prolongs the wait of the others, but revives
 * nothing for its sender, which counts from the time of sending.
 */

import { heldBy, sameTerm, type Term } from "../../core/leadership/term.ts";
import { AdmittedLock, type AdmittedLockOptions, type GrantRequest } from "../admitted-lock.ts";
import type { Tenure } from "../coordination.ts";
import type { ControlSession } from "./control-session.ts";
import { LeaderRecord, type LeaseRecord } from "./leader-record.ts";

export class EtcdLock extends AdmittedLock<LeaseRecord> {
  protected readonly outdated = "etcd does not know the last epoch";
  readonly #control: ControlSession;
  readonly #keys: LeaderRecord;
  /** The newest revision of the key that was seen here, and since when by our clock. */
  #seen = { revision: 0, since: 0 };
  #own: LeaseRecord | null = null;

  constructor(options: AdmittedLockOptions, control: ControlSession) {
    super(options);
    this.#control = control;
    this.#keys = new LeaderRecord(control, options.role);
  }

  /** The watch reports a change of the key. It may be late: only a revision above the one that was read counts. */
  changed(revision: number, deleted: boolean): void {
    if (deleted) this.hint();
    else if (this.#seen.revision < revision) this.#see(revision);
  }

  protected async tryGrant({
    candidate,
    ttlMs,
    floor,
  }: GrantRequest): Promise<LeaseRecord | "held" | "again"> {
    const deadlineMs = this.#deadlineMs(ttlMs);
    const seen = await this.#keys.read(deadlineMs);
    const { held, revision } = seen;
    if (held && !heldBy(held.term, candidate) && this.#leftMs(held) > 0) {
      this.wait(held.term.epoch, this.#leftMs(held));
      return "held";
    }
    const epoch = Math.max(floor, revision, held?.term.epoch ?? 0) + 1;
    const granted = await this.#keys.grant(candidate, ttlMs, epoch, seen, deadlineMs);
    if (!granted) return "again";
    this.#leftMs(granted);
    return granted;
  }

  protected onAdmitted(held: LeaseRecord): void {
    this.#own = held;
  }

  protected giveBack(held: LeaseRecord): Promise<void> {
    return this.#keys.release(held);
  }

  protected async tryRenew(term: Term, ttlMs: number): Promise<boolean> {
    const deadlineMs = this.#deadlineMs(ttlMs);
    const held = await this.#recordOf(term, deadlineMs);
    const renewed = held && (await this.#keys.renew(held, ttlMs, deadlineMs));
    if (renewed) this.#own = renewed;
    return renewed !== null;
  }

  protected async giveUp(term: Term): Promise<void> {
    const held = await this.#recordOf(term);
    if (held) await this.#keys.release(held);
  }

  /** Its times are those of the holder's clock. */
  protected async readTenure(): Promise<Tenure | null> {
    const { held } = await this.#keys.read();
    if (!held) return null;
    this.note(held.term.epoch);
    if (this.#leftMs(held) <= 0) return null;
    const { term, acquiredAt, renewedAt, ttlMs } = held;
    return { ...term, acquiredAt, leaseUntil: renewedAt + ttlMs };
  }

  protected onStop(): void {
    this.#own = null;
  }

  async #recordOf(term: Term, deadlineMs?: number): Promise<LeaseRecord | null> {
    if (this.#own && sameTerm(this.#own.term, term)) return this.#own;
    const { held } = await this.#keys.read(deadlineMs);
    return held && sameTerm(held.term, term) ? held : null;
  }

  /**
   * Etcd does not report its time, and its leases count whole seconds. So a lease ends when its revision was seen here for
   * the whole lease. Rejected: comparing times that the holder noted, because two machines whose clocks differ by more
   * than a lease would take leadership from each other for ever.
   */
  #leftMs({ revision, ttlMs }: LeaseRecord): number {
    if (this.#seen.revision !== revision) this.#see(revision);
    return ttlMs - (this.#control.time.monotonic() - this.#seen.since);
  }

  #see(revision: number): void {
    this.#seen = { revision, since: this.#control.time.monotonic() };
  }

  /** A quarter of the lease at most: after a renewal that hangs there is time for another one, at another member. */
  #deadlineMs(ttlMs: number): number {
    return Math.min(this.#control.commandMs, Math.ceil(ttlMs / 4));
  }
}

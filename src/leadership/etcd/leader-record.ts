/**
 * The key that names the leader. Every term has its own etcd lease, and the key is attached to it:
 *
 *     grant     a new lease, and the key put under it if it is still as it was seen
 *     renew     the key put again if it is still under that lease, and the lease kept alive
 *     release   the lease revoked, and the key is gone with it
 *
 * So a late renewal or release affects its own term or nothing. After a grant whose answer was lost, the lease is
 * revoked or expires: in whichever order these reach etcd, no key remains.
 */

import type { NodeIdentity } from "../../core/node.ts";
import type { LeaderRole, Term } from "../../core/leadership/term.ts";
import type { ControlSession } from "./control-session.ts";
import { get, isUnder, put, unchanged } from "./key-value.ts";

/** The value of the key. */
interface Written extends Omit<Term, "role"> {
  /** No other node may be granted the role for so long after this revision. */
  readonly ttlMs: number;
  /** By the clock of the holder, only to be shown. */
  readonly acquiredAt: number;
  readonly renewedAt: number;
}

export interface LeaseRecord extends Written {
  readonly term: Term;
  readonly lease: string;
  readonly revision: number;
}

export interface LeaseSnapshot {
  readonly held: LeaseRecord | null;
  /** Of the key; 0 when it is not there. */
  readonly keyRevision: number;
  /** Of the whole etcd: above it lies every epoch to come. */
  readonly revision: number;
}

export class LeaderRecord {
  readonly #control: ControlSession;
  readonly #role: LeaderRole;
  readonly #key: string;

  constructor(control: ControlSession, role: LeaderRole) {
    this.#control = control;
    this.#role = role;
    this.#key = leaderKey(control, role);
  }

  async read(deadlineMs?: number): Promise<LeaseSnapshot> {
    const { revision, found } = await this.#control.transact({ then: [get(this.#key)] }, deadlineMs);
    const entry = found[0]?.[0];
    // A value that cannot be read, or that is under no lease, excludes no candidate: an operator has written it.
    const written = entry && entry.lease !== "" ? parsed(entry.value) : null;
    const held = written && this.#record(written, entry!.lease, entry!.revision);
    return { held, keyRevision: entry?.revision ?? 0, revision };
  }

  /** Null when the key is not as it was seen any more: another candidate was faster. */
  async grant(
    { name: leader, incarnation }: NodeIdentity,
    ttlMs: number,
    epoch: number,
    { keyRevision }: LeaseSnapshot,
    deadlineMs: number,
  ): Promise<LeaseRecord | null> {
    const control = this.#control;
    const at = control.time.now();
    const lease = await control.grantLease(ttlMs, deadlineMs);
    const written = { leader, incarnation, epoch, ttlMs, acquiredAt: at, renewedAt: at };
    let granted = false;
    try {
      const { succeeded, revision } = await control.transact(
        { if: [unchanged(this.#key, keyRevision)], then: [this.#put(written, lease)] },
        deadlineMs,
      );
      granted = succeeded;
      return granted ? this.#record(written, lease, revision) : null;
    } finally {
      if (!granted) void control.revokeLease(lease).catch(() => {}); // one that cannot be ended expires
    }
  }

  /** The lease as it is then; null when that term is over. */
  async renew(held: LeaseRecord, ttlMs: number, deadlineMs: number): Promise<LeaseRecord | null> {
    const control = this.#control;
    const { leader, incarnation, epoch, acquiredAt, lease } = held;
    const written = { leader, incarnation, epoch, ttlMs, acquiredAt, renewedAt: control.time.now() };
    const [alive, { succeeded, revision }] = await Promise.all([
      control.keepAlive(lease, deadlineMs),
      control.transact({ if: [isUnder(this.#key, lease)], then: [this.#put(written, lease)] }, deadlineMs),
    ]);
    return alive && succeeded ? this.#record(written, lease, revision) : null;
  }

  async release({ lease }: LeaseRecord): Promise<void> {
    await this.#control.revokeLease(lease);
  }

  #put(written: Written, lease: string) {
    return put(this.#key, JSON.stringify(written), lease);
  }

  #record(written: Written, lease: string, revision: number): LeaseRecord {
    const { leader, incarnation, epoch } = written;
    return { ...written, term: { role: this.#role, leader, incarnation, epoch }, lease, revision };
  }
}

export function leaderKey(control: ControlSession, role: LeaderRole): string {
  return control.key("leader", role);
}

function parsed(value: string): Written | null {
  try {
    const read = JSON.parse(value) as Partial<Written> | null;
    const { leader, incarnation, epoch, ttlMs, acquiredAt = 0, renewedAt = 0 } = read ?? {};
    if (typeof leader !== "string" || typeof incarnation !== "string") return null;
    if (!Number.isSafeInteger(epoch) || typeof ttlMs !== "number") return null;
    return { leader, incarnation, epoch: epoch!, ttlMs, acquiredAt, renewedAt };
  } catch {
    return null;
  }
}

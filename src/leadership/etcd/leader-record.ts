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
import { get, isUnder, put, unchanged, type KeyValue } from "./key-value.ts";

export interface LeaseRecord {
  readonly term: Term;
  readonly lease: string;
  readonly revision: number;
  /** No other node may be granted the role for so long after this revision. */
  readonly ttlMs: number;
  /** By the clock of the holder, only to be shown. */
  readonly acquiredAt: number;
  readonly renewedAt: number;
}

export interface LeaseSnapshot {
  readonly held: LeaseRecord | null;
  /** Of the key; 0 when it is not there. */
  readonly keyRevision: number;
  /** Of the whole etcd: above it lies every epoch to come. */
  readonly revision: number;
}

export interface GrantRequest {
  readonly candidate: NodeIdentity;
  readonly ttlMs: number;
  readonly epoch: number;
  /** What was seen, and must be so still. */
  readonly seen: LeaseSnapshot;
  readonly deadlineMs: number;
}

type Written = Pick<Term, "leader" | "incarnation" | "epoch"> &
  Pick<LeaseRecord, "ttlMs" | "acquiredAt" | "renewedAt">;

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
    return { held: entry ? recordIn(this.#role, entry) : null, keyRevision: entry?.revision ?? 0, revision };
  }

  /** Null when another candidate was faster. */
  async grant({ candidate, ttlMs, epoch, seen, deadlineMs }: GrantRequest): Promise<LeaseRecord | null> {
    const control = this.#control;
    const { name: leader, incarnation } = candidate;
    const at = control.time.now();
    const lease = await control.grantLease(ttlMs, deadlineMs);
    const written: Written = { leader, incarnation, epoch, ttlMs, acquiredAt: at, renewedAt: at };
    try {
      const { succeeded, revision } = await control.transact(
        {
          if: [unchanged(this.#key, seen.keyRevision)],
          then: [put(this.#key, JSON.stringify(written), lease)],
        },
        deadlineMs,
      );
      if (succeeded) return recordOf(this.#role, written, lease, revision);
    } catch (error) {
      control.dropLease(lease);
      throw error;
    }
    control.dropLease(lease);
    return null;
  }

  /** The lease as it is then; null when that term is over. */
  async renew(held: LeaseRecord, ttlMs: number, deadlineMs: number): Promise<LeaseRecord | null> {
    const control = this.#control;
    const { term, lease, acquiredAt } = held;
    const { leader, incarnation, epoch } = term;
    const written: Written = {
      leader,
      incarnation,
      epoch,
      ttlMs,
      acquiredAt,
      renewedAt: control.time.now(),
    };
    const [alive, { succeeded, revision }] = await Promise.all([
      control.keepAlive(lease, deadlineMs),
      control.transact(
        { if: [isUnder(this.#key, lease)], then: [put(this.#key, JSON.stringify(written), lease)] },
        deadlineMs,
      ),
    ]);
    return alive && succeeded ? recordOf(this.#role, written, lease, revision) : null;
  }

  async release({ lease }: LeaseRecord): Promise<void> {
    await this.#control.revokeLease(lease);
  }
}

export function leaderKey(control: ControlSession, role: LeaderRole): string {
  return control.key("leader", role);
}

/** A value that cannot be read, or that is under no lease, excludes no candidate: an operator has written it. */
function recordIn(role: LeaderRole, { value, lease, revision }: KeyValue): LeaseRecord | null {
  const written = parsed(value);
  return written && lease !== "" ? recordOf(role, written, lease, revision) : null;
}

function recordOf(role: LeaderRole, written: Written, lease: string, revision: number): LeaseRecord {
  const { leader, incarnation, epoch, ttlMs, acquiredAt, renewedAt } = written;
  return { term: { role, leader, incarnation, epoch }, lease, revision, ttlMs, acquiredAt, renewedAt };
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

/**
 * The rows that name the leader: `leader` with the lease, by the database's clock, and `term` with the epoch that the
 * store compares in writes. These rows decide; the advisory lock only makes failover fast.
 */

import type { NodeIdentity } from "../../core/node.ts";
import type { LeaderRole, Term } from "../../core/leadership/term.ts";
import { read, write, type Queryable, type Statement } from "../../platform/drivers/postgres/postgres.ts";
import type { Tenure } from "../coordination.ts";
import { subjectOf } from "../server-locks.ts";
import { HELD_LOCKS } from "./advisory-lock.ts";
import { LEADER_CHANNEL, NOW, type ControlSession } from "./control-session.ts";

/** Who sits in a role, and whether the seat may be taken. */
export interface LeaseRecord {
  readonly leader: string;
  readonly incarnation: string;
  readonly epoch: number;
  /** Of the lease: below 0, it ran out so long ago. */
  readonly leftMs: number;
  /** Released, or never granted. */
  readonly free: boolean;
  readonly locked: boolean;
}

export interface GrantRequest {
  readonly candidate: NodeIdentity;
  readonly ttlMs: number;
  /** Our session holds the advisory lock: the term will stand on it. */
  readonly locked: boolean;
  /** And no term of ours stands on it: whichever other term does has lost its session. */
  readonly evidence: boolean;
}

/** Leases end a little before they are taken by force: the holder may just be renewing. */
export const EVICT_AFTER_MS = 150;
/** How long a grant waits for the writes of the leader before it. They take milliseconds unless it was stopped in one. */
const GRANT_WAIT_MS = 500;

const FENCE = "role = $2 AND leader = $3 AND incarnation = $4 AND epoch = $5";

const LOOK = read(
  "leader-look",
  `SELECT l.leader, l.incarnation, l.epoch, l.lease_until - ${NOW} AS "leftMs", l.lease_until = 0 AS free, l.locked
   FROM baton.leader l JOIN baton.term t USING (role) WHERE role = $2`,
);
const TENURE = read(
  "leader-tenure",
  `SELECT role, leader, incarnation, epoch, acquired_at AS "acquiredAt", lease_until AS "leaseUntil" FROM baton.leader
   WHERE role = $2 AND lease_until > ${NOW}`,
);
/** A row that is missing begins above every epoch that anything else remembers. */
const SEED = write(
  "leader-seed",
  `WITH seat AS (
     INSERT INTO baton.leader (role, leader, incarnation, epoch, acquired_at, lease_until, locked)
     VALUES ($1, '', '', 0, 0, 0, false) ON CONFLICT (role) DO NOTHING
   )
   INSERT INTO baton.term (role, leader, incarnation, epoch)
   SELECT $1, '', '', greatest(
     0,
     (SELECT epoch FROM baton.leader WHERE role = $1),
     (SELECT max(leader_epoch) FROM baton.author WHERE $1 = 'scheduler'),
     (SELECT max(leader_epoch) FROM baton.sample WHERE $1 = 'metrics_aggregator')
   )
   ON CONFLICT (role) DO NOTHING`,
);
/**
 * One at a time: the second candidate waits for the row, and then sees that it was taken. The update of the term waits
 * for the writes that the leader before has under way; what it begins later is refused.
 */
const GRANT = write(
  "leader-grant",
  `WITH moment AS MATERIALIZED (
     SELECT ${NOW} AS at, set_config('lock_timeout', '${GRANT_WAIT_MS}', true)
   ), seat AS (
     SELECT l.role, l.epoch FROM baton.leader l, moment
     WHERE l.role = $2 AND (
       l.lease_until <= at
       OR (l.locked AND $7)
       OR (l.leader = $3 AND l.incarnation = $4 AND ($6 OR NOT l.locked))
     )
     FOR UPDATE OF l
   ), raised AS (
     UPDATE baton.term t SET leader = $3, incarnation = $4, epoch = greatest(t.epoch, seat.epoch) + 1
     FROM seat WHERE t.role = seat.role RETURNING t.epoch
   ),
   granted AS (
     UPDATE baton.leader l SET leader = $3, incarnation = $4, epoch = raised.epoch, acquired_at = at,
       lease_until = at + $5::bigint, locked = $6
     FROM raised, moment WHERE l.role = $2 RETURNING l.epoch
   ) SELECT epoch, pg_notify($8, $9)::text FROM granted`,
);
/** Not one whose epoch the store does not know: it could write nothing. Not one that ran out: a late renewal must not revive it. */
const RENEW = write(
  "leader-renew",
  `UPDATE baton.leader SET lease_until = ${NOW} + $6::bigint, locked = locked OR $7
   WHERE ${FENCE} AND lease_until > ${NOW}
     AND EXISTS (SELECT 1 FROM baton.term t WHERE t.role = $2 AND t.epoch = $5) RETURNING 1`,
);
const RELEASE = write(
  "leader-release",
  `WITH ended AS (
     UPDATE baton.leader SET lease_until = 0, locked = false WHERE ${FENCE} AND lease_until > ${NOW} RETURNING 1
   ) SELECT pg_notify($6, $7) FROM ended`,
);

/** The lease of this very term ran out, and it was not given back. */
const RAN_OUT = `EXISTS (
  SELECT 1 FROM baton.leader WHERE role = $2 AND epoch = $3 AND lease_until > 0 AND lease_until + ${EVICT_AFTER_MS} <= ${NOW}
)`;
/** Ends the sessions with these pids; how many. */
const evict = (name: string, victims: string): Statement =>
  write(
    name,
    `WITH victims AS MATERIALIZED (${victims}) SELECT count(pg_terminate_backend(pid)) AS ended FROM victims`,
  );

/** Of all sessions, also those of its pool: one may have a transaction open that is in the way of the next term. */
const EVICT_LIFE = evict(
  "leader-evict-life",
  `SELECT pid FROM pg_stat_activity
   WHERE datname = current_database() AND pid <> pg_backend_pid() AND starts_with(application_name, $4) AND ${RAN_OUT}`,
);

const EVICT_HOLDER = evict(
  "leader-evict-holder",
  `SELECT pid FROM (${HELD_LOCKS}) held
   WHERE key = $4::bigint AND pid <> ALL ($5::int[])
     AND EXISTS (SELECT 1 FROM baton.leader WHERE role = $2 AND epoch = $3 AND lease_until <= ${NOW})`,
);

/** Sessions of our own that we have lost and the server has not. */
const EVICT_OLD_SELF = evict(
  "leader-evict-self",
  `SELECT held.pid FROM (${HELD_LOCKS}) held JOIN pg_stat_activity USING (pid)
   WHERE key = $1::bigint AND held.pid <> ALL ($2::int[]) AND starts_with(application_name, $3)`,
);

export class LeaderRecord {
  readonly #control: ControlSession;
  readonly #role: LeaderRole;

  constructor(control: ControlSession, role: LeaderRole) {
    this.#control = control;
    this.#role = role;
  }

  async look(): Promise<LeaseRecord> {
    for (;;) {
      const [record] = await this.#control.query<LeaseRecord>(LOOK, [this.#control.now(), this.#role]);
      if (record) return record;
      await this.#control.query(SEED, [this.#role]);
    }
  }

  async tenure(): Promise<Tenure | null> {
    const [tenure] = await this.#control.query<Tenure>(TENURE, [this.#control.now(), this.#role]);
    return tenure ?? null;
  }

  async grant(session: Queryable, request: GrantRequest): Promise<Term | null> {
    const { candidate, ttlMs, locked, evidence } = request;
    const { name: leader, incarnation } = candidate;
    const values = [this.#control.now(), this.#role, leader, incarnation, ttlMs, locked, evidence];
    const [row] = await session.query<{ epoch: number }>(GRANT, [...values, ...this.#notification()]);
    return row ? { role: this.#role, leader, incarnation, epoch: row.epoch } : null;
  }

  async renew(session: Queryable, term: Term, ttlMs: number, locked: boolean): Promise<boolean> {
    const rows = await session.query(RENEW, [...this.#fence(term), ttlMs, locked]);
    return rows.length === 1;
  }

  async release(session: Queryable, term: Term): Promise<void> {
    await session.query(RELEASE, [...this.#fence(term), ...this.#notification()]);
  }

  /** Ends all sessions of a life whose lease ran out. Rejects where that is not permitted. */
  async evictLife({ epoch }: LeaseRecord, applicationPrefix: string): Promise<number> {
    const values = [this.#control.now(), this.#role, epoch, applicationPrefix];
    return ended(await this.#control.query(EVICT_LIFE, values));
  }

  /** Ends whichever session has the advisory lock while no node leads, unless it is one of `ours`. */
  async evictHolder({ epoch }: LeaseRecord, key: bigint, ours: readonly number[]): Promise<number> {
    const values = [this.#control.now(), this.#role, epoch, String(key), ours];
    return ended(await this.#control.query(EVICT_HOLDER, values));
  }

  async evictOldSelf(key: bigint, ours: readonly number[], applicationPrefix: string): Promise<number> {
    return ended(await this.#control.query(EVICT_OLD_SELF, [String(key), ours, applicationPrefix]));
  }

  #notification(): unknown[] {
    return [LEADER_CHANNEL, this.#control.payload(subjectOf(this.#role))];
  }

  #fence({ role, leader, incarnation, epoch }: Term): unknown[] {
    return [this.#control.now(), role, leader, incarnation, epoch];
  }
}

function ended(rows: readonly unknown[]): number {
  return (rows[0] as { readonly ended: number }).ended;
}

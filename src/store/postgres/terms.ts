/**
 * The terms of leaders in PostgreSQL, and the fence for their writes. A write holds the row of its term until it
 * commits: the next term is granted after that, and a write under an older term is refused with STALE_EPOCH.
 */

import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import { sameTerm, type LeaderRole, type Term } from "../../core/leadership/term.ts";
import { type Postgres, type Queryable, read, write } from "../../platform/drivers/postgres/postgres.ts";
import type { TermStore } from "../store.ts";

interface Row {
  readonly leader: NodeName;
  readonly incarnation: string;
  readonly epoch: number;
}

const READ = read("term-read", "SELECT leader, incarnation, epoch FROM baton.term WHERE role = $1");
const GRANT = write(
  "term-grant",
  `INSERT INTO baton.term AS t (role, leader, incarnation, epoch) VALUES ($1, $2, $3, 1)
   ON CONFLICT (role) DO UPDATE SET leader = excluded.leader, incarnation = excluded.incarnation, epoch = t.epoch + 1
   RETURNING leader, incarnation, epoch`,
);
const ADMIT = write(
  "term-admit",
  `INSERT INTO baton.term AS t (role, leader, incarnation, epoch) VALUES ($1, $2, $3, $4)
   ON CONFLICT (role) DO UPDATE SET leader = excluded.leader, incarnation = excluded.incarnation, epoch = excluded.epoch
   WHERE t.epoch < excluded.epoch RETURNING epoch`,
);
/**
 * Shared with other writes of the leader, and in the way of a grant: whoever is granted the next term waits until this
 * transaction has ended, and this one sees a grant that was faster. A mere look (`EXISTS`) would let an old leader commit
 * after the grant.
 */
const HOLD = write(
  "term-hold",
  "SELECT leader, incarnation, epoch FROM baton.term WHERE role = $1 FOR SHARE",
);

/** This term, if it is the newest. It is given as `termValues` from the parameter of this number on. */
export const newest = (first: number): string =>
  `SELECT FROM baton.term WHERE role = $${first} AND leader = $${first + 1} AND incarnation = $${first + 2} AND epoch = $${first + 3}::bigint`;

/** HOLD for a statement that is the whole transaction: a grant that was faster changes the row, and then it is not found. */
export const fenceFrom = (first: number): string => `fence AS MATERIALIZED (${newest(first)} FOR SHARE)`;

export function termValues({ role, leader, incarnation, epoch }: Term): unknown[] {
  return [role, leader, incarnation, epoch];
}

export class PostgresTerms implements TermStore {
  readonly #db: Postgres;

  constructor(db: Postgres) {
    this.#db = db;
  }

  async grant(role: LeaderRole, candidate: NodeIdentity): Promise<Term> {
    const [row] = await this.#db.query<Row>(GRANT, [role, candidate.name, candidate.incarnation]);
    return { role, ...row! };
  }

  async admit(term: Term): Promise<boolean> {
    const taken = await this.#db.query(ADMIT, [term.role, term.leader, term.incarnation, term.epoch]);
    if (taken.length === 1) return true;
    const current = await this.read(term.role);
    return current !== null && sameTerm(current, term);
  }

  async read(role: LeaderRole): Promise<Term | null> {
    const [row] = await this.#db.query<Row>(READ, [role]);
    return row ? { role, ...row } : null;
  }

  /** First in the transaction of a leader's write: only the newest term may pass, and stays the newest until its end. */
  async hold(tx: Queryable, fence: Term): Promise<void> {
    const [row] = await tx.query<Row>(HOLD, [fence.role]);
    if (row && sameTerm({ role: fence.role, ...row }, fence)) return;
    throw stale(fence, row?.epoch ?? null);
  }

  /** For a call that has nothing to write: an old leader is to learn that it is one all the same. */
  async check(fence: Term | undefined): Promise<void> {
    const current = fence ? await this.read(fence.role) : null;
    if (fence && !(current && sameTerm(current, fence))) throw stale(fence, current?.epoch ?? null);
  }

  /** What to say when a statement has not found its fence. */
  async refusal(fence: Term): Promise<BatonError> {
    return stale(fence, (await this.read(fence.role))?.epoch ?? null);
  }
}

function stale({ role, epoch }: Term, newest: number | null): BatonError {
  const message = `epoch ${epoch} of ${role} is over; the newest is ${newest ?? "none"}`;
  return new BatonError("STALE_EPOCH", message, { epoch, newest });
}

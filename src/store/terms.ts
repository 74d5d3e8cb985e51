/**
 * Terms in the store: the epochs that leaders were granted, and the fence of their writes. A fenced write holds the row
 * of its term until it commits: the next term is granted after that, and a write under an older term is refused with
 * STALE_EPOCH.
 */

import { BatonError } from "../core/errors.ts";
import { sameTerm, type LeaderRole, type Term } from "../core/leadership/term.ts";
import type { NodeIdentity } from "../core/node.ts";
import { query, type Script, type Scripts, sql } from "./script.ts";

/** Keeps the highest epoch of every leader role for ever, independent of what grants it. */
export interface TermStore {
  /** The highest epoch ever + 1, in one step. */
  grant(role: LeaderRole, candidate: NodeIdentity): Promise<Term>;
  /**
   * Stores a term that Redis, etcd or peers have granted. False if a higher epoch, or another term of the same epoch,
   * is known.
   */
  admit(term: Term): Promise<boolean>;
  read(role: LeaderRole): Promise<Term | null>;
}

const READ = sql("term-read", "SELECT role, leader, incarnation, epoch FROM baton.term WHERE role = $1");
const GRANT = sql(
  "term-grant",
  `INSERT INTO baton.term AS t (role, leader, incarnation, epoch) VALUES ($1, $2, $3, 1)
   ON CONFLICT (role) DO UPDATE SET leader = excluded.leader, incarnation = excluded.incarnation, epoch = t.epoch + 1
   RETURNING role, leader, incarnation, epoch`,
);
const ADMIT = sql(
  "term-admit",
  `INSERT INTO baton.term AS t (role, leader, incarnation, epoch) VALUES ($1, $2, $3, $4)
   ON CONFLICT (role) DO UPDATE SET leader = excluded.leader, incarnation = excluded.incarnation, epoch = excluded.epoch
   WHERE t.epoch < excluded.epoch RETURNING epoch`,
);
/**
 * A shared lock: other writes of the leader do not wait, but a grant does until this transaction has ended, and this
 * transaction sees a grant that came first. Without the lock, an old leader could commit after the grant.
 */
const HOLD = sql(
  "term-hold",
  "SELECT role, leader, incarnation, epoch FROM baton.term WHERE role = $1 FOR SHARE",
);

export function termStore(scripts: Scripts): TermStore {
  return {
    grant: (role, { name, incarnation }) =>
      scripts.write(function* () {
        return (yield* query<Term>(GRANT, role, name, incarnation))[0]!;
      }),
    admit: (term) => scripts.write(() => admitTerm(term)),
    read: (role) => scripts.read(() => readTerm(role)),
  };
}

export function* readTerm(role: LeaderRole): Script<Term | null> {
  const [row] = yield* query<Term>(READ, role);
  return row ?? null;
}

export function* admitTerm(term: Term): Script<boolean> {
  const taken = yield* query(ADMIT, term.role, term.leader, term.incarnation, term.epoch);
  if (taken.length === 1) return true;
  const current = yield* readTerm(term.role);
  return sameTerm(current, term);
}

/** First in the transaction of a leader's write. */
export function* holdTerm(fence: Term): Script<void> {
  const [row] = yield* query<Term>(HOLD, fence.role);
  if (!row || !sameTerm(row, fence)) throw staleEpoch(fence, row?.epoch ?? null);
}

export function staleEpoch({ role, epoch }: Term, newest: number | null): BatonError {
  const message = `epoch ${epoch} of ${role} is over; the newest is ${newest ?? "none"}`;
  return new BatonError("STALE_EPOCH", message, { epoch, newest });
}

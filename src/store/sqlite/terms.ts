/**
 * The terms of leaders in SQLite. `check` is the fence: inside the transaction of a leader's write it refuses every
 * term but the newest with STALE_EPOCH.
 */

import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import { sameTerm, type LeaderRole, type Term } from "../../core/leadership/term.ts";
import type { SqliteFile } from "../../platform/drivers/sqlite/sqlite-file.ts";
import type { TermStore } from "../store.ts";

export class SqliteTerms implements TermStore {
  readonly #file: SqliteFile;
  readonly #sql;

  constructor(file: SqliteFile) {
    this.#file = file;
    this.#sql = {
      read: file.prepare("SELECT leader, incarnation, epoch FROM term WHERE role = ?"),
      write: file.prepare(
        "INSERT INTO term VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET leader = excluded.leader, incarnation = excluded.incarnation, epoch = excluded.epoch",
      ),
    };
  }

  grant(role: LeaderRole, candidate: NodeIdentity): Promise<Term> {
    return this.#file.write(() => {
      const epoch = (this.#current(role)?.epoch ?? 0) + 1;
      return this.#save({ role, leader: candidate.name, incarnation: candidate.incarnation, epoch });
    });
  }

  admit(term: Term): Promise<boolean> {
    return this.#file.write(() => this.admits(term));
  }

  /** Inside the caller's transaction. */
  admits(term: Term): boolean {
    const current = this.#current(term.role);
    if (current && current.epoch >= term.epoch) return sameTerm(current, term);
    this.#save(term);
    return true;
  }

  async read(role: LeaderRole): Promise<Term | null> {
    return this.#file.read(() => this.#current(role));
  }

  /** Inside the transaction of a leader's write: only the newest term may pass. */
  check(fence: Term): void {
    const current = this.#current(fence.role);
    if (current && sameTerm(current, fence)) return;
    throw new BatonError(
      "STALE_EPOCH",
      `epoch ${fence.epoch} of ${fence.role} is over; the newest is ${current?.epoch ?? "none"}`,
      { epoch: fence.epoch, newest: current?.epoch ?? null },
    );
  }

  #current(role: LeaderRole): Term | null {
    const row = this.#sql.read.get(role);
    if (!row) return null;
    return {
      role,
      leader: row["leader"] as NodeName,
      incarnation: row["incarnation"] as string,
      epoch: row["epoch"] as number,
    };
  }

  #save(term: Term): Term {
    this.#sql.write.run(term.role, term.leader, term.incarnation, term.epoch);
    return term;
  }
}

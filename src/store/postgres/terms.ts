/** The fence of leaders' writes in PostgreSQL, for statements and transactions that are not scripts. */

import type { BatonError } from "../../core/errors.ts";
import { sameTerm, type Term } from "../../core/leadership/term.ts";
import type { Queryable } from "../../platform/drivers/postgres/postgres.ts";
import { holdTerm, readTerm, staleEpoch } from "../terms.ts";
import type { PostgresScripts } from "./scripts.ts";

/** This term, if it is the newest. The parameters from this number on are `termValues`. */
export const newest = (first: number): string =>
  `SELECT FROM baton.term WHERE role = $${first} AND leader = $${first + 1} AND incarnation = $${first + 2} AND epoch = $${first + 3}::bigint`;

/** `holdTerm` for a statement that is the whole transaction: after a grant that came first, the row is not found. */
export const fenceFrom = (first: number): string => `fence AS MATERIALIZED (${newest(first)} FOR SHARE)`;

export function termValues({ role, leader, incarnation, epoch }: Term): unknown[] {
  return [role, leader, incarnation, epoch];
}

export class PostgresTerms {
  readonly #scripts: PostgresScripts;

  constructor(scripts: PostgresScripts) {
    this.#scripts = scripts;
  }

  /** First in the transaction of a leader's write: only the newest term may pass, and stays the newest until its end. */
  hold(tx: Queryable, fence: Term): Promise<void> {
    return this.#scripts.run(tx, holdTerm(fence));
  }

  /** For a call that has nothing to write: an old leader must be refused in any case. */
  async check(fence: Term | undefined): Promise<void> {
    const current = fence ? await this.#read(fence) : null;
    if (fence && !(current && sameTerm(current, fence))) throw staleEpoch(fence, current?.epoch ?? null);
  }

  /** The error for a statement whose fence did not hold. */
  async refusal(fence: Term): Promise<BatonError> {
    return staleEpoch(fence, (await this.#read(fence))?.epoch ?? null);
  }

  #read({ role }: Term): Promise<Term | null> {
    return this.#scripts.read(() => readTerm(role));
  }
}

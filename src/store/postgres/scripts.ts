/** Runs scripts (script.ts) and other transactions on PostgreSQL. One of a leader holds the row of its term until it commits. */

import type { BatonError } from "../../core/errors.ts";
import type { Term } from "../../core/leadership/term.ts";
import { type Queryable, read, type Statement, write } from "../../platform/drivers/postgres/postgres.ts";
import { runAwaited, type Script, type Scripts, type Sql, usesNow } from "../script.ts";
import { holdTerm, readTerm, staleEpoch } from "../terms.ts";
import { NOW, type StoreCache, withoutNul } from "./jobs/store-cache.ts";

export class PostgresScripts implements Scripts {
  readonly #cache: StoreCache;
  readonly #statements = new Map<Sql, Statement>();

  constructor(cache: StoreCache) {
    this.#cache = cache;
  }

  read<T>(script: () => Script<T>): Promise<T> {
    return this.run(this.#cache.db, script());
  }

  /** The script gets its transaction, for work that is not a script. */
  write<T>(script: (tx: Queryable) => Script<T>, fence?: Term): Promise<T> {
    return this.transaction((tx) => this.run(tx, script(tx)), fence);
  }

  /** With a fence, only the newest term may pass, and it stays the newest until the end of the transaction. */
  transaction<T>(work: (tx: Queryable) => Promise<T>, fence?: Term): Promise<T> {
    return this.#cache.db.transaction(async (tx) => {
      if (fence) await this.run(tx, holdTerm(fence));
      return work(tx);
    });
  }

  /** For a call that has nothing to write: an old leader must be refused in any case. */
  async check(fence: Term | undefined): Promise<void> {
    if (fence) await this.transaction(async () => {}, fence);
  }

  /** The error for a statement whose fence did not hold. */
  async refusal(fence: Term): Promise<BatonError> {
    const newest = await this.read(() => readTerm(fence.role));
    return staleEpoch(fence, newest?.epoch ?? null);
  }

  run<T>(tx: Queryable, script: Script<T>): Promise<T> {
    return runAwaited(script, ({ sql, values }) => {
      const clean = values.map((value) => (typeof value === "string" ? withoutNul(value) : value));
      return tx.query(this.#statement(sql), usesNow(sql) ? [this.#cache.now(), ...clean] : clean);
    });
  }

  #statement(sql: Sql): Statement {
    let statement = this.#statements.get(sql);
    if (!statement) {
      const text = sql.text.replaceAll("{now}", NOW);
      const reads = text.startsWith("SELECT") && !/ FOR (?:SHARE|UPDATE)/.test(text);
      this.#statements.set(sql, (statement = (reads ? read : write)(sql.name, text)));
    }
    return statement;
  }
}

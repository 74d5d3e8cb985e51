/** Runs scripts (script.ts) on SQLite: a write is one operation of the group commit, after the comparison of its term. */

import type { StatementSync } from "node:sqlite";
import type { Term } from "../../core/leadership/term.ts";
import { forSqlite, runNow, type Script, type Scripts, type Sql, usesNow } from "../script.ts";
import { holdTerm } from "../terms.ts";
import type { StoreCache } from "./jobs/store-cache.ts";

export class SqliteScripts implements Scripts {
  readonly #cache: StoreCache;
  readonly #statements = new Map<Sql, StatementSync>();

  constructor(cache: StoreCache) {
    this.#cache = cache;
  }

  async read<T>(script: () => Script<T>): Promise<T> {
    return this.#cache.file.read(() => this.run(script()));
  }

  write<T>(script: () => Script<T>, fence?: Term): Promise<T> {
    return this.transaction(() => this.run(script()), fence);
  }

  /** With a fence, only the newest term may pass. */
  transaction<T>(work: () => T, fence?: Term): Promise<T> {
    return this.#cache.file.write(() => {
      if (fence) this.run(holdTerm(fence));
      return work();
    });
  }

  /** Inside the caller's transaction. */
  run<T>(script: Script<T>): T {
    return runNow(script, ({ sql, values }) => {
      let statement = this.#statements.get(sql);
      if (!statement) this.#statements.set(sql, (statement = this.#cache.file.prepare(forSqlite(sql.text))));
      const rows = usesNow(sql)
        ? statement.all(this.#cache.clock.now(), ...values)
        : statement.all(...values);
      return rows.map((row) => ({ ...row })); // those of SQLite have no prototype
    });
  }
}

import type { Term } from "../../core/leadership/term.ts";
import type { Sample, SampleStore } from "../samples.ts";
import type { StoreCache } from "./jobs/store-cache.ts";
import type { SqliteTerms } from "./terms.ts";

export class SqliteSamples implements SampleStore {
  readonly #ledger: StoreCache;
  readonly #terms: SqliteTerms;
  readonly #sql;

  constructor({ ledger, terms }: { readonly ledger: StoreCache; readonly terms: SqliteTerms }) {
    this.#ledger = ledger;
    this.#terms = terms;
    const { file } = ledger;
    this.#sql = {
      note: file.prepare("INSERT INTO sample (at, leader_epoch, sample) VALUES (?, ?, ?)"),
      list: file.prepare("SELECT at, leader_epoch, sample FROM sample ORDER BY n DESC LIMIT ?"),
      purge: file.prepare("DELETE FROM sample WHERE at <= ?"),
    };
  }

  note(sample: string, fence: Term): Promise<void> {
    return this.#ledger.file.write(() => {
      this.#terms.check(fence);
      this.#sql.note.run(this.#ledger.clock.now(), fence.epoch, sample);
    });
  }

  async list(limit: number): Promise<readonly Sample[]> {
    const rows = this.#ledger.file.read(() => this.#sql.list.all(limit));
    return rows.map((row) => ({
      at: row["at"] as number,
      leaderEpoch: row["leader_epoch"] as number,
      sample: row["sample"] as string,
    }));
  }

  purge(ageMs: number, fence: Term): Promise<number> {
    return this.#ledger.file.write(() => {
      this.#terms.check(fence);
      return Number(this.#sql.purge.run(this.#ledger.clock.now() - ageMs).changes);
    });
  }
}

import type { Term } from "../../core/leadership/term.ts";
import { read, write } from "../../platform/drivers/postgres/postgres.ts";
import type { Sample, SampleStore } from "../samples.ts";
import { type StoreCache, NOW } from "./jobs/store-cache.ts";
import type { PostgresTerms } from "./terms.ts";

const ADD = write(
  "sample-note",
  `INSERT INTO baton.sample (at, leader_epoch, sample) VALUES (${NOW}, $2, $3)`,
);
const LIST = read(
  "sample-list",
  'SELECT at, leader_epoch AS "leaderEpoch", sample FROM baton.sample ORDER BY n DESC LIMIT $1',
);
const PURGE = write("sample-purge", `DELETE FROM baton.sample WHERE at <= ${NOW} - $2::bigint RETURNING n`);

export class PostgresSamples implements SampleStore {
  readonly #ledger: StoreCache;
  readonly #terms: PostgresTerms;

  constructor({ ledger, terms }: { readonly ledger: StoreCache; readonly terms: PostgresTerms }) {
    this.#ledger = ledger;
    this.#terms = terms;
  }

  note(sample: string, fence: Term): Promise<void> {
    return this.#ledger.db.transaction(async (tx) => {
      await this.#terms.hold(tx, fence);
      await tx.query(ADD, [this.#ledger.now(), fence.epoch, sample]);
    });
  }

  list(limit: number): Promise<readonly Sample[]> {
    return this.#ledger.db.query<Sample>(LIST, [limit]);
  }

  purge(ageMs: number, fence: Term): Promise<number> {
    return this.#ledger.db.transaction(async (tx) => {
      await this.#terms.hold(tx, fence);
      return (await tx.query(PURGE, [this.#ledger.now(), ageMs])).length;
    });
  }
}

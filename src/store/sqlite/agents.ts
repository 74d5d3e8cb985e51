/**
 * Agents in SQLite: capabilities, version and the time of the last heartbeat. Only the leader writes, under its term.
 */

import type { Term } from "../../core/leadership/term.ts";
import type { Agent, AgentSeen, AgentStore } from "../agents.ts";
import type { StoreCache } from "./jobs/store-cache.ts";
import type { SqliteTerms } from "./terms.ts";

export class SqliteAgents implements AgentStore {
  readonly #ledger: StoreCache;
  readonly #terms: SqliteTerms;
  readonly #sql;

  constructor({ ledger, terms }: { readonly ledger: StoreCache; readonly terms: SqliteTerms }) {
    this.#ledger = ledger;
    this.#terms = terms;
    const { file } = ledger;
    this.#sql = {
      seen: file.prepare(
        `INSERT INTO agent (name, capabilities, version, labels, running, first_seen_at, last_seen_at, leader_epoch)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)
         ON CONFLICT DO UPDATE SET capabilities = excluded.capabilities, version = excluded.version, labels = excluded.labels,
           running = excluded.running, last_seen_at = excluded.last_seen_at, removed_at = NULL, leader_epoch = excluded.leader_epoch`,
      ),
      remove: file.prepare(
        "UPDATE agent SET removed_at = ?, leader_epoch = ? WHERE name = ? AND removed_at IS NULL",
      ),
      list: file.prepare("SELECT * FROM agent WHERE removed_at IS NULL OR ? ORDER BY name"),
      purge: file.prepare("DELETE FROM agent WHERE coalesce(removed_at, last_seen_at) <= ?"),
    };
  }

  seen(agents: readonly AgentSeen[], fence: Term): Promise<void> {
    return this.#ledger.file.write(() => {
      this.#terms.check(fence);
      const now = this.#ledger.clock.now();
      for (const { name, capabilities, version, labels, running } of agents) {
        const known = JSON.stringify(capabilities);
        this.#sql.seen.run(name, known, version, labels, running, now, fence.epoch);
      }
    });
  }

  remove(name: string, fence: Term): Promise<boolean> {
    return this.#ledger.file.write(() => {
      this.#terms.check(fence);
      return this.#sql.remove.run(this.#ledger.clock.now(), fence.epoch, name).changes === 1;
    });
  }

  async list(withRemoved: boolean): Promise<readonly Agent[]> {
    const rows = this.#ledger.file.read(() => this.#sql.list.all(withRemoved ? 1 : 0));
    return rows.map((row) => ({
      name: row["name"] as string,
      capabilities: JSON.parse(row["capabilities"] as string) as string[],
      version: row["version"] as string | null,
      labels: row["labels"] as string,
      running: row["running"] as number,
      firstSeenAt: row["first_seen_at"] as number,
      lastSeenAt: row["last_seen_at"] as number,
      removedAt: row["removed_at"] as number | null,
      leaderEpoch: row["leader_epoch"] as number,
    }));
  }

  purge(ageMs: number, fence: Term): Promise<number> {
    return this.#ledger.file.write(() => {
      this.#terms.check(fence);
      return Number(this.#sql.purge.run(this.#ledger.clock.now() - ageMs).changes);
    });
  }
}

/**
 * Agents in PostgreSQL: capabilities, version and the time of the last heartbeat. Only the leader writes, under its
 * term.
 */

import type { Term } from "../../core/leadership/term.ts";
import { read, write } from "../../platform/drivers/postgres/postgres.ts";
import { int4s, texts } from "../../platform/drivers/postgres/arrays.ts";
import type { Agent, AgentSeen, AgentStore } from "../agents.ts";
import { type StoreCache, NOW, withoutNul } from "./jobs/store-cache.ts";
import type { PostgresTerms } from "./terms.ts";

/** Names in order, so that two batches with the same agents do not wait for each other crosswise. */
const SEEN = write(
  "agent-seen",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now)
   INSERT INTO baton.agent (name, capabilities, version, labels, running, first_seen_at, last_seen_at, leader_epoch)
   SELECT a.name, a.capabilities, a.version, a.labels, a.running, now, now, $2::bigint
   FROM clock CROSS JOIN unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::int[]) AS a (name, capabilities, version, labels, running)
   ORDER BY a.name
   ON CONFLICT (name) DO UPDATE SET capabilities = excluded.capabilities, version = excluded.version, labels = excluded.labels,
     running = excluded.running, last_seen_at = excluded.last_seen_at, removed_at = NULL, leader_epoch = excluded.leader_epoch`,
);
const REMOVE = write(
  "agent-remove",
  `UPDATE baton.agent SET removed_at = ${NOW}, leader_epoch = $2::bigint WHERE name = $3 AND removed_at IS NULL RETURNING name`,
);
const LIST = read(
  "agent-list",
  `SELECT name, capabilities, version, labels, running, first_seen_at AS "firstSeenAt", last_seen_at AS "lastSeenAt",
     removed_at AS "removedAt", leader_epoch AS "leaderEpoch"
   FROM baton.agent WHERE removed_at IS NULL OR $1::boolean ORDER BY name COLLATE "C"`,
);
const PURGE = write(
  "agent-purge",
  `DELETE FROM baton.agent WHERE coalesce(removed_at, last_seen_at) <= ${NOW} - $2::bigint RETURNING name`,
);

type Row = Omit<Agent, "capabilities"> & { readonly capabilities: string };

export class PostgresAgents implements AgentStore {
  readonly #ledger: StoreCache;
  readonly #terms: PostgresTerms;

  constructor({ ledger, terms }: { readonly ledger: StoreCache; readonly terms: PostgresTerms }) {
    this.#ledger = ledger;
    this.#terms = terms;
  }

  seen(given: readonly AgentSeen[], fence: Term): Promise<void> {
    // A statement may write each row only once: the last word about an agent counts.
    const agents = [...new Map(given.map((agent) => [agent.name, agent])).values()];
    const values = [
      fence.epoch,
      texts(agents.map(({ name }) => name)),
      texts(agents.map(({ capabilities }) => JSON.stringify(capabilities))),
      texts(agents.map(({ version }) => version && withoutNul(version))),
      texts(agents.map(({ labels }) => labels)),
      int4s(agents.map(({ running }) => running)),
    ];
    return this.#ledger.db.transaction(async (tx) => {
      await this.#terms.hold(tx, fence);
      await tx.query(SEEN, [this.#ledger.now(), ...values]);
    });
  }

  remove(name: string, fence: Term): Promise<boolean> {
    return this.#ledger.db.transaction(async (tx) => {
      await this.#terms.hold(tx, fence);
      return (await tx.query(REMOVE, [this.#ledger.now(), fence.epoch, name])).length === 1;
    });
  }

  async list(withRemoved: boolean): Promise<readonly Agent[]> {
    const rows = await this.#ledger.db.query<Row>(LIST, [withRemoved]);
    return rows.map((row) => ({ ...row, capabilities: JSON.parse(row.capabilities) as string[] }));
  }

  purge(ageMs: number, fence: Term): Promise<number> {
    return this.#ledger.db.transaction(async (tx) => {
      await this.#terms.hold(tx, fence);
      return (await tx.query(PURGE, [this.#ledger.now(), ageMs])).length;
    });
  }
}

/**
 * Agents in the store: workers that lease jobs over HTTP. Only the leader writes, under its term; each change records
 * the epoch of that term.
 *
 *   unknown --heartbeat, lease--> alive --remove--> removed (a tombstone) --heartbeat--> alive
 *
 * The store does not decide whether an agent is alive: readers derive that from `lastSeenAt`.
 */

import type { Term } from "../core/leadership/term.ts";
import { each, query, type Scripts, sql } from "./script.ts";

export interface AgentStore {
  /** Creates or updates agents. A removed agent is active again. */
  seen(agents: readonly AgentSeen[], fence: Term): Promise<void>;
  /** Leaves a tombstone. False if there is no agent of that name, or it is removed already. */
  remove(name: string, fence: Term): Promise<boolean>;
  list(withRemoved: boolean): Promise<readonly Agent[]>;
}

export interface AgentSeen {
  readonly name: string;
  /** Tasks. */
  readonly capabilities: readonly string[];
  /** Null if unknown. */
  readonly version: string | null;
  /** A JSON object that the agent defines, as text. */
  readonly labels: string;
  /** As reported by the agent. */
  readonly running: number;
}

export interface Agent extends AgentSeen {
  /** Wall clock of the store. */
  readonly firstSeenAt: number;
  readonly lastSeenAt: number;
  readonly removedAt: number | null;
  readonly leaderEpoch: number;
}

const SEEN = sql(
  "agent-seen",
  `INSERT INTO baton.agent (name, capabilities, version, labels, running, first_seen_at, last_seen_at, leader_epoch)
   VALUES ($2, $3, $4, $5, $6, {now}, {now}, $7)
   ON CONFLICT (name) DO UPDATE SET capabilities = excluded.capabilities, version = excluded.version, labels = excluded.labels,
     running = excluded.running, last_seen_at = excluded.last_seen_at, removed_at = NULL, leader_epoch = excluded.leader_epoch`,
);
const REMOVE = sql(
  "agent-remove",
  "UPDATE baton.agent SET removed_at = {now}, leader_epoch = $2 WHERE name = $3 AND removed_at IS NULL RETURNING name",
);
const LIST = sql(
  "agent-list",
  `SELECT name, capabilities, version, labels, running, first_seen_at AS "firstSeenAt", last_seen_at AS "lastSeenAt",
     removed_at AS "removedAt", leader_epoch AS "leaderEpoch"
   FROM baton.agent WHERE removed_at IS NULL OR $1::int = 1 ORDER BY name COLLATE "C"`,
);
export const PURGE_AGENTS = sql(
  "agent-purge",
  "DELETE FROM baton.agent WHERE coalesce(removed_at, last_seen_at) <= {now} - $2::bigint RETURNING name",
);

type Row = Omit<Agent, "capabilities"> & { readonly capabilities: string };

export function agentStore(scripts: Scripts): AgentStore {
  return {
    seen: (agents, fence) => {
      // In the order of names, so that two batches with the same agents cannot deadlock.
      const sorted = agents.toSorted((a, b) => (a.name === b.name ? 0 : a.name < b.name ? -1 : 1));
      const rows = sorted.map(({ name, capabilities, version, labels, running }) => {
        return [name, JSON.stringify(capabilities), version, labels, running, fence.epoch];
      });
      return scripts.write(() => each(SEEN, rows), fence);
    },
    remove: (name, fence) =>
      scripts.write(function* () {
        return (yield* query(REMOVE, fence.epoch, name)).length === 1;
      }, fence),
    list: (withRemoved) =>
      scripts.read(function* () {
        const rows = yield* query<Row>(LIST, withRemoved ? 1 : 0);
        return rows.map((row) => ({ ...row, capabilities: JSON.parse(row.capabilities) as string[] }));
      }),
  };
}

import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { ours as openOurs } from "../engine.ts";
import type { Row, Scenario, Side } from "../scenario.ts";

const PER_SECOND_MAX = 8;
const CONNECTIONS_MAX = 6;
/** Until what a node does at its start is over. */
const SETTLE_MS = 6_000;

/** The session that asks is in none of the figures: it commits twice, and has a connection of its own. */
const COUNT = `
  SELECT xact_commit + xact_rollback AS transactions,
    (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()) AS connections
  FROM pg_stat_database WHERE datname = current_database()`;

export const idle: Scenario = {
  name: "idle",
  about: "transactions per second, and connections, of each node of a cluster that has nothing to do",
  async run(bench) {
    const { engine, quick } = bench;
    if (!engine.shared) return [];
    const rows: Row[] = [];
    for (const nodes of quick ? [1, 2] : [1, 2, 4, 8]) {
      const place = await engine.place(`idle-${nodes}`);
      const sides: Side[] = [];
      const client = new Client({ connectionString: place.url! });
      await client.connect();
      try {
        for (let n = 1; n <= nodes; n++)
          sides.push(await openOurs(place, { name: `idle-${n}`, onReset: "keep" }));
        await sleep(SETTLE_MS);
        const { perSecond, connections } = await count(client, quick ? 10_000 : 30_000);
        const base = { floor: null, ratio: null };
        const each = `of each of ${nodes} idle ${nodes === 1 ? "node" : "nodes"}`;
        rows.push(
          {
            ...base,
            figure: `transactions ${each}`,
            unit: "1/s",
            ours: perSecond / nodes,
            target: { text: `≤ ${PER_SECOND_MAX}`, met: perSecond / nodes <= PER_SECOND_MAX },
          },
          {
            ...base,
            figure: `connections ${each}`,
            unit: "",
            ours: connections / nodes,
            target: { text: `≤ ${CONNECTIONS_MAX}`, met: connections / nodes <= CONNECTIONS_MAX },
          },
        );
        bench.say(`${nodes} ${nodes === 1 ? "node" : "nodes"}`);
      } finally {
        await client.end();
        await Promise.all(sides.map((side) => side.stop()));
      }
    }
    return rows;
  },
};

async function count(client: Client, ms: number): Promise<{ perSecond: number; connections: number }> {
  const ask = async (): Promise<{ transactions: number; connections: number }> => {
    const { rows } = await client.query<{ transactions: string; connections: string }>(COUNT);
    return { transactions: Number(rows[0]!.transactions), connections: Number(rows[0]!.connections) };
  };
  const before = await ask();
  await sleep(ms);
  const after = await ask();
  return {
    perSecond: (after.transactions - before.transactions) / (ms / 1_000),
    connections: after.connections,
  };
}

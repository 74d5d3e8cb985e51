import { setTimeout as sleep } from "node:timers/promises";
import { ours as openOurs } from "../engine.ts";
import { PostgresCounter } from "../server-counters.ts";
import { absolute, type Row, type Scenario, type Side } from "../scenario.ts";

const PER_SECOND_MAX = 8;
const CONNECTIONS_MAX = 6;
/** Until what a node does at its start is over. */
const SETTLE_MS = 6_000;

export const idle: Scenario = {
  name: "idle",
  about: "transactions per second, and connections, of each node of a cluster that has nothing to do",
  only: "postgres",
  goals: ["postgres"],
  async run(bench) {
    const { engine, quick } = bench;
    const rows: Row[] = [];
    for (const nodes of quick ? [1, 2] : [1, 2, 4, 8]) {
      const place = await engine.place(`idle-${nodes}`);
      const sides: Side[] = [];
      const counter = await PostgresCounter.open(place.url!);
      try {
        for (let n = 1; n <= nodes; n++)
          sides.push(await openOurs(place, { name: `idle-${n}`, onReset: "keep" }));
        await sleep(SETTLE_MS);
        const perSecond = await counter.perSecond(quick ? 10_000 : 30_000);
        const connections = await counter.connections();
        const each = `of each of ${nodes} idle ${nodes === 1 ? "node" : "nodes"}`;
        rows.push(
          absolute(`transactions ${each}`, "1/s", perSecond / nodes, PER_SECOND_MAX),
          absolute(`connections ${each}`, "", connections / nodes, CONNECTIONS_MAX),
        );
        bench.say(`${nodes} ${nodes === 1 ? "node" : "nodes"}`);
      } finally {
        await counter.close();
        await Promise.all(sides.map((side) => side.stop()));
      }
    }
    return rows;
  },
};

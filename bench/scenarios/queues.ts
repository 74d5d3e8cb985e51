/** A backlog in 200 queues beside the same in one: how fast it drains, and how long pages and counts take meanwhile. */

import { Agent } from "undici";
import { ours as openOurs, pile } from "../engine.ts";
import { timesOf } from "../pages.ts";
import { absolute, atLeast, interleave, rateRow, withSides, type Row, type Scenario } from "../scenario.ts";
import { percentile } from "../statistics.ts";

const WAITING = 200_000;
const QUEUES = 200;
const SHARE_MIN = 0.8;
const PAGE_MS_MAX = 100;
const PAGES = {
  "lists of jobs": [
    "/cluster/jobs?limit=50",
    "/cluster/jobs?limit=50&status=queued",
    "/cluster/jobs?limit=50&queue=queue-42&status=queued",
    "/cluster/jobs?limit=50&status=completed",
  ],
  counts: ["/queues", "/cluster/overview"],
};

export const queues: Scenario = {
  name: "queues",
  about: `drain and pages with ${WAITING.toLocaleString("en-US")} waiting jobs (times --scale) in ${QUEUES} queues; beside them as many in one`,
  goals: ["postgres"],
  async run(bench) {
    const { engine, quick, scale, rounds } = bench;
    const waiting = Math.round((quick ? 40_000 : WAITING) * scale);
    // At least half of them still wait at the end.
    const jobs = Math.floor(waiting / 2 / (rounds + 1));
    const many = await openOurs(await engine.place("many"), { http: true });
    const one = await openOurs(await engine.place("one"));
    const agent = new Agent();
    return withSides({ many, one }, async (sides) => {
      await pile(many, waiting, { queues: QUEUES });
      await pile(one, waiting, { queues: 1 });
      const count = waiting.toLocaleString("en-US");
      bench.say(`${count} wait on each side`);
      const drained = await interleave(bench, sides, (side) => side.call("drainSome", { jobs }));
      const rows: Row[] = [
        rateRow(`drain with ${count} in ${QUEUES} queues`, drained.many, drained.one, {
          beside: "one queue",
          goal: atLeast(SHARE_MIN),
        }),
      ];
      const url = await many.call("url");
      for (const [what, paths] of Object.entries(PAGES)) {
        const worst: number[] = [];
        for (const path of paths) {
          await timesOf(agent, `${url}${path}`, 2);
          worst.push(percentile(await timesOf(agent, `${url}${path}`, quick ? 5 : 30), 0.95));
          bench.say(`${path}: p95 ${worst.at(-1)!.toFixed(1)} ms`);
        }
        rows.push(
          absolute(`  ${what}, the slowest of ${paths.length}, p95`, "ms", Math.max(...worst), PAGE_MS_MAX),
        );
      }
      await agent.destroy();
      return rows;
    });
  },
};

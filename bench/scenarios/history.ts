import { Agent } from "undici";
import { ours as openOurs } from "../engine.ts";
import { timesOf } from "../pages.ts";
import {
  atLeast,
  atMost,
  besideRow,
  compareBy,
  interleave,
  rateRow,
  WARM_MS,
  withSides,
  type Scenario,
} from "../scenario.ts";
import { median } from "../statistics.ts";

const SHARE_MIN = 0.9;
const LIST_TIMES_MAX = 1.1;
const LIST = "/cluster/jobs?limit=50";
/** Requests in each round. */
const LISTS = 20;

export const history: Scenario = {
  name: "history",
  about:
    "the hot path and pages of lists with a million finished jobs (times --scale), beside a store without them",
  goals: ["sqlite", "postgres"],
  async run(bench) {
    const { engine } = bench;
    const before = Math.round((bench.quick ? 50_000 : 1_000_000) * bench.scale);
    const jobs = bench.quick ? 15_000 : 30_000;
    const count = before.toLocaleString("en-US");
    const place = await engine.place("full");
    await engine.seedHistory(place, before);
    bench.say(`${count} finished jobs are there`);
    const full = await openOurs(place, { onReset: "keep", http: true });
    const empty = await openOurs(await engine.place("empty"), { onReset: "leave", http: true });
    const agent = new Agent();
    return withSides({ full, empty }, async (sides) => {
      const results = await interleave(bench, sides, async (side) => {
        await side.call("settle");
        const drained = await side.call("drain", { jobs });
        await side.call("settle");
        await side.call("submitFor", { callers: 50, ms: WARM_MS });
        const submitted = await side.call("submitFor", { callers: 50, ms: bench.quick ? 200 : 300 });
        await side.call("finish");
        const url = await side.call("url");
        await timesOf(agent, `${url}${LIST}`, 3);
        const listed = median(await timesOf(agent, `${url}${LIST}`, LISTS));
        return { drained, submitted, listed };
      });
      await agent.destroy();
      const { full: kept, empty: none } = results;
      const beside = "none";
      const goal = atLeast(SHARE_MIN);
      const rates = (["drained", "submitted"] as const).map((what) =>
        rateRow(
          `${what === "drained" ? "drain" : "submits"} with ${count} finished before`,
          kept.map((result) => result[what]),
          none.map((result) => result[what]),
          { beside, goal },
        ),
      );
      const listed = compareBy(kept, none, (result) => result.listed);
      const figure = `a page of jobs with ${count} finished before, p50`;
      return [...rates, besideRow(figure, "ms", listed, { beside, goal: atMost(LIST_TIMES_MAX) })];
    });
  },
};

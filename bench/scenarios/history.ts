import type { Actions } from "../actions.ts";
import { Actor } from "../actor.ts";
import { compare, interleave, withSides, type Row, type Scenario } from "../scenario.ts";
import { median } from "../statistics.ts";

const CHANGE_MAX = 0.1;

export const history: Scenario = {
  name: "history",
  about:
    "the hot path with a million finished jobs in the store, beside a store without them (shown as its floor)",
  async run(bench) {
    const before = bench.quick ? 50_000 : 1_000_000;
    const jobs = bench.quick ? 15_000 : 30_000;
    const kept = { dir: bench.dir("full"), onReset: "keep" };
    // Run for real, so that the history is shaped as the store keeps it; and in a process of its own, because one that
    // has run a million jobs has another heap than the one it is compared with.
    const seeder = await Actor.open<Actions>("./baton.ts", kept);
    await withSides({ seeder }, () =>
      seeder.call("passThrough", { jobs: before, backlog: 20_000, marks: [1] }),
    );
    bench.say(`${before.toLocaleString("en-US")} jobs have run`);
    const full = await Actor.open<Actions>("./baton.ts", kept);
    const empty = await Actor.open<Actions>("./baton.ts", { dir: bench.dir("empty"), onReset: "leave" });
    return withSides({ full, empty }, async (sides) => {
      const results = await interleave(bench, sides, async (side) => {
        await side.call("settle");
        const drained = await side.call("drain", { jobs });
        await side.call("settle");
        const submitted = await side.call("submitFor", { callers: 50, ms: bench.quick ? 200 : 300 });
        await side.call("finish");
        return { drained, submitted };
      });
      return (["drained", "submitted"] as const).map((what): Row => {
        const full = results.full.map((result) => result[what]);
        const empty = results.empty.map((result) => result[what]);
        const rates = compare(
          full.map((sample) => sample.perSecond),
          empty.map((sample) => sample.perSecond),
        );
        return {
          figure: `${what === "drained" ? "drain" : "submits"} with ${before.toLocaleString("en-US")} finished before`,
          unit: "jobs/s",
          ...rates,
          cpuUs: {
            ours: median(full.map((sample) => sample.cpuUsPerJob)),
            floor: median(empty.map((sample) => sample.cpuUsPerJob)),
          },
          target: { text: `≥ ${100 - CHANGE_MAX * 100} % of none`, met: rates.ratio >= 1 - CHANGE_MAX },
        };
      });
    });
  },
};

import type { Actions } from "../actions.ts";
import { Actor } from "../actor.ts";
import { interleave, rateRow, withSides, type Scenario } from "../scenario.ts";

export const drain: Scenario = {
  name: "drain",
  about: "a backlog of no-op jobs, until all have run and the store says so; history is kept as by default",
  async run(bench) {
    const jobs = bench.quick ? 20_000 : 50_000;
    const ours = await Actor.open<Actions>("./baton.ts", { dir: bench.dir("ours") });
    const floor = await Actor.open<Actions>("./floors/sqlite.ts", { dir: bench.dir("floor") });
    const history = { dir: bench.dir("history"), history: true };
    const keeping = await Actor.open<Actions>("./floors/sqlite.ts", history);
    return withSides({ ours, floor, keeping }, async (sides) => {
      const results = await interleave(bench, sides, async (side) => {
        await side.call("reset");
        return side.call("drain", { jobs });
      });
      return [
        rateRow("drain of no-op jobs", results.ours, results.floor, 0.5),
        rateRow("  floor that keeps history too", results.ours, results.keeping, null),
      ];
    });
  },
};

import type { Actions } from "../actions.ts";
import { Actor } from "../actor.ts";
import { interleave, rateRow, withSides, type Scenario } from "../scenario.ts";

export const bulk: Scenario = {
  name: "bulk",
  about: "one caller who submits 1,000 jobs at a time; the floor is INSERT … SELECT FROM json_each",
  async run(bench) {
    const ms = bench.quick ? 200 : 300;
    const ours = await Actor.open<Actions>("./baton.ts", { dir: bench.dir("ours") });
    const floor = await Actor.open<Actions>("./floors/sqlite.ts", { dir: bench.dir("floor") });
    return withSides({ ours, floor }, async (sides) => {
      const results = await interleave(bench, sides, async (side) => {
        await side.call("reset");
        return side.call("bulkFor", { size: 1_000, ms });
      });
      return [rateRow("bulk submits of 1,000", results.ours, results.floor, 0.5)];
    });
  },
};

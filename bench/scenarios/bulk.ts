import { ours as openOurs } from "../engine.ts";
import { atLeast, interleave, rateRow, WARM_MS, withSides, type Scenario } from "../scenario.ts";

const SHARE_MIN = { sqlite: 0.6, postgres: 0.5 } as const;

export const bulk: Scenario = {
  name: "bulk",
  about: "one caller who submits 1,000 jobs at a time; the floor is one INSERT … SELECT out of a JSON array",
  goals: ["sqlite"],
  async run(bench) {
    const { engine } = bench;
    const ms = bench.quick ? 200 : 300;
    const ours = await openOurs(await engine.place("ours"));
    const floor = await engine.floor(await engine.place("floor"));
    return withSides({ ours, floor }, async (sides) => {
      const results = await interleave(bench, sides, async (side) => {
        await side.call("reset");
        await side.call("bulkFor", { size: 1_000, ms: WARM_MS });
        return side.call("bulkFor", { size: 1_000, ms });
      });
      const goal = atLeast(SHARE_MIN[engine.name]);
      return [rateRow("bulk submits of 1,000", results.ours, results.floor, { goal })];
    });
  },
};

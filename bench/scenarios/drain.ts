import { ours as openOurs } from "../engine.ts";
import { atLeast, interleave, rateRow, withSides, type Scenario } from "../scenario.ts";

export const drain: Scenario = {
  name: "drain",
  about: "a backlog of no-op jobs, until all have run and the store says so; history is kept as by default",
  async run(bench) {
    const { engine } = bench;
    const jobs = bench.quick ? 20_000 : 50_000;
    const ours = await openOurs(await engine.place("ours"));
    const floor = await engine.floor(await engine.place("floor"));
    const keeping = await engine.floor(await engine.place("history"), { history: true });
    return withSides({ ours, floor, keeping }, async (sides) => {
      const results = await interleave(bench, sides, async (side) => {
        await side.call("reset");
        return side.call("drain", { jobs });
      });
      return [
        rateRow("drain of no-op jobs", results.ours, results.floor, { goal: atLeast(0.5) }),
        rateRow("  floor that keeps history too", results.ours, results.keeping),
      ];
    });
  },
};

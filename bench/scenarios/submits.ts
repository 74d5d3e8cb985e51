import type { Actions } from "../actions.ts";
import { Actor } from "../actor.ts";
import { interleave, rateRow, withSides, type Scenario } from "../scenario.ts";

export const submits: Scenario = {
  name: "submits",
  about:
    "50 concurrent callers, each of which awaits its submit; the floor puts the INSERTs of one turn in one commit",
  async run(bench) {
    const ms = bench.quick ? 200 : 300;
    const ours = await Actor.open<Actions>("./baton.ts", { dir: bench.dir("ours") });
    const floor = await Actor.open<Actions>("./floors/sqlite.ts", { dir: bench.dir("floor") });
    return withSides({ ours, floor }, async (sides) => {
      const results = await interleave(bench, sides, async (side) => {
        await side.call("reset");
        return side.call("submitFor", { callers: 50, ms });
      });
      return [rateRow("submits, 50 callers", results.ours, results.floor, 0.5)];
    });
  },
};

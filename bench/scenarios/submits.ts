import { ours as openOurs } from "../engine.ts";
import { atLeast, interleave, rateRow, WARM_MS, withSides, type Scenario } from "../scenario.ts";

const SHARE_MIN = { sqlite: 0.5, postgres: 0.8 } as const;

export const submits: Scenario = {
  name: "submits",
  about:
    "50 concurrent callers, each of which awaits its submit; the floor puts the INSERTs of one turn in one commit",
  goals: ["postgres"],
  async run(bench) {
    const { engine } = bench;
    const ms = bench.quick ? 200 : 300;
    const ours = await openOurs(await engine.place("ours"));
    const floor = await engine.floor(await engine.place("floor"));
    return withSides({ ours, floor }, async (sides) => {
      const results = await interleave(bench, sides, async (side) => {
        await side.call("reset");
        await side.call("submitFor", { callers: 50, ms: WARM_MS });
        return side.call("submitFor", { callers: 50, ms });
      });
      const goal = atLeast(SHARE_MIN[engine.name]);
      return [rateRow("submits, 50 callers", results.ours, results.floor, { goal })];
    });
  },
};

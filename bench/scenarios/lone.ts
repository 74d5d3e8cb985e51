import type { Actions } from "../actions.ts";
import { Actor } from "../actor.ts";
import { atMost, compare, interleave, withSides, type Scenario } from "../scenario.ts";
import { median } from "../statistics.ts";

export const lone: Scenario = {
  name: "lone",
  about: "a single caller, one submit after the other; the floor is one INSERT in its own commit",
  async run(bench) {
    const calls = bench.quick ? 150 : 300;
    const ours = await Actor.open<Actions>("./baton.ts", { dir: bench.dir("ours") });
    const floor = await Actor.open<Actions>("./floors/sqlite.ts", { dir: bench.dir("floor"), single: true });
    return withSides({ ours, floor }, async (sides) => {
      const time = async (side: typeof ours, run: boolean): Promise<number> => {
        await side.call("reset");
        return median(await side.call("lone", { calls, run }));
      };
      const alone = await interleave(bench, sides, (side) => time(side, false));
      const busy = await interleave(bench, sides, (side) => time(side, side === ours));
      const submit = compare(alone.ours, alone.floor);
      return [
        { figure: "lone caller, submit p50", unit: "ms", ...submit, target: atMost(1.3, submit.ratio) },
        {
          figure: "  while its jobs run meanwhile",
          unit: "ms",
          ...compare(busy.ours, busy.floor),
          target: null,
        },
      ];
    });
  },
};

import { ours as openOurs } from "../engine.ts";
import { atMost, compare, cpuOf, interleave, withSides, type Row, type Scenario } from "../scenario.ts";
import { median } from "../statistics.ts";

export const lone: Scenario = {
  name: "lone",
  about: "a single caller, one submit after the other; the floor is one INSERT in its own commit",
  async run(bench) {
    const { engine } = bench;
    const calls = bench.quick ? 150 : 300;
    const ours = await openOurs(await engine.place("ours"));
    const floor = await engine.floor(await engine.place("floor"), { single: true });
    return withSides({ ours, floor }, async (sides) => {
      const time = async (run: boolean) => {
        const results = await interleave(bench, sides, async (side) => {
          await side.call("reset");
          return side.call("lone", { calls, run: run && side === ours });
        });
        const middles = (list: typeof results.ours) => list.map(({ tookMs }) => median(tookMs));
        const samples = (list: typeof results.ours) => list.map(({ sample }) => sample);
        return {
          ...compare(middles(results.ours), middles(results.floor)),
          unit: "ms",
          cpuUs: { ours: cpuOf(samples(results.ours)), floor: cpuOf(samples(results.floor)) },
        };
      };
      const alone = await time(false);
      const busy = await time(true);
      return [
        { ...alone, figure: "lone caller, submit p50", target: atMost(1.3, alone.ratio) },
        { ...busy, figure: "  while its jobs run meanwhile", target: null },
      ] satisfies Row[];
    });
  },
};

import { ours as openOurs } from "../engine.ts";
import {
  atMost,
  besideRow,
  compareBy,
  cpuOf,
  interleave,
  withSides,
  type Goal,
  type Row,
  type Scenario,
} from "../scenario.ts";
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
      const time = async (figure: string, run: boolean, goal?: Goal): Promise<Row> => {
        const { ours: mine, floor: bare } = await interleave(bench, sides, async (side) => {
          await side.call("reset");
          return side.call("lone", { calls, run: run && side === ours });
        });
        const samples = (list: typeof mine) => list.map(({ sample }) => sample);
        return besideRow(
          figure,
          "ms",
          compareBy(mine, bare, ({ tookMs }) => median(tookMs)),
          {
            cpuUs: { ours: cpuOf(samples(mine)), floor: cpuOf(samples(bare)) },
            goal,
          },
        );
      };
      return [
        await time("lone caller, submit p50", false, atMost(1.3)),
        await time("  while its jobs run meanwhile", true),
      ];
    });
  },
};

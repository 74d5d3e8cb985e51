import type { Actions } from "../actions.ts";
import { Actor } from "../actor.ts";
import { withSides, type Row, type Scenario } from "../scenario.ts";
import { percentile } from "../statistics.ts";

const P99_MS = 10;

export const pickUp: Scenario = {
  name: "pick-up",
  about: "from the call of submit to the start of the handler at 100 jobs/s with random gaps",
  async run(bench) {
    const jobs = bench.quick ? 100 : 250;
    const rounds = bench.quick ? 2 : 6;
    const ours = await Actor.open<Actions>("./baton.ts", { dir: bench.dir("ours") });
    const floor = await Actor.open<Actions>("./floors/sqlite.ts", { dir: bench.dir("floor") });
    return withSides({ ours, floor }, async (sides) => {
      const waited: Record<"ours" | "floor", number[]> = { ours: [], floor: [] };
      for (let round = 1; round <= rounds; round++) {
        for (const name of ["ours", "floor"] as const) {
          const side = sides[name];
          await side.call("reset");
          await side.call("pickUp", { perSecond: 500, jobs: 100 }); // compiles the code
          waited[name].push(...(await side.call("pickUp", { perSecond: 100, jobs })));
        }
        bench.say(`round ${round} of ${rounds}`);
      }
      return [0.5, 0.95, 0.99].map((share): Row => {
        const p = percentile(waited.ours, share);
        const bare = percentile(waited.floor, share);
        return {
          figure: `pick-up at 100 jobs/s, p${share * 100}`,
          unit: "ms",
          ours: p,
          floor: bare,
          ratio: p / bare,
          target: share === 0.99 ? { text: `< ${P99_MS} ms`, met: p < P99_MS } : null,
        };
      });
    });
  },
};

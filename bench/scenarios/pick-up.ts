import { ours as openOurs, type Engine } from "../engine.ts";
import { withSides, type Bench, type Row, type Scenario, type Side } from "../scenario.ts";
import { percentile } from "../statistics.ts";

const PERCENTILES = { p50: 0.5, p95: 0.95, p99: 0.99 } as const;

export const pickUp: Scenario = {
  name: "pick-up",
  about: "from the call of submit to the start of the handler at 100 jobs/s with random gaps",
  async run(bench) {
    const { engine } = bench;
    const ours = await openOurs(await engine.place("ours"));
    const floor = await engine.floor(await engine.place("floor"));
    const rows = await withSides({ ours, floor }, ({ ours, floor }) =>
      compareWaits(bench, "in one process", { ours: [ours, ours], floor: [floor, floor] }),
    );
    return engine.shared ? [...rows, ...(await betweenProcesses(bench, engine))] : rows;
  },
};

/** One process submits and runs nothing, the other does the work. */
async function betweenProcesses(bench: Bench, engine: Engine): Promise<Row[]> {
  const here = await engine.place("between");
  const there = await engine.place("between-floor");
  const sides = {
    oursFrom: await openOurs(here, { works: false }),
    oursTo: await openOurs(here),
    floorFrom: await engine.floor(there, { notify: true }),
    floorTo: await engine.floor(there, { notify: true }),
  };
  return withSides(sides, ({ oursFrom, oursTo, floorFrom, floorTo }) =>
    compareWaits(bench, "from one process to another", {
      ours: [oursFrom, oursTo],
      floor: [floorFrom, floorTo],
    }),
  );
}

type Ends = readonly [from: Side, to: Side];

async function compareWaits(
  bench: Bench,
  where: string,
  sides: Readonly<Record<"ours" | "floor", Ends>>,
): Promise<Row[]> {
  const jobs = bench.quick ? 100 : 250;
  const rounds = bench.quick ? 2 : 6;
  const waited: Record<"ours" | "floor", number[]> = { ours: [], floor: [] };
  for (let round = 1; round <= rounds; round++) {
    for (const name of ["ours", "floor"] as const) {
      await waits(sides[name], 500, 100, true); // compiles the code
      waited[name].push(...(await waits(sides[name], 100, jobs, false)));
    }
    bench.say(`${where}, round ${round} of ${rounds}`);
  }
  return Object.entries(PERCENTILES).map(([name, share]): Row => {
    const p = percentile(waited.ours, share);
    const bare = percentile(waited.floor, share);
    const target = bench.engine.targets.pickUpMs[name];
    return {
      figure: `pick-up ${where}, ${name}`,
      unit: "ms",
      ours: p,
      floor: bare,
      ratio: p / bare,
      target: target ? { text: target.text, met: p <= target.limit } : null,
    };
  });
}

async function waits([from, to]: Ends, perSecond: number, jobs: number, anew: boolean): Promise<number[]> {
  if (anew) {
    if (from !== to) await from.call("reset");
    await to.call("reset");
    await to.call("collect");
  }
  await from.call("produce", { perSecond, jobs });
  return to.call("collected", { jobs });
}

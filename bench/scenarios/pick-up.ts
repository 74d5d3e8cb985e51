import { ours as openOurs, type Engine } from "../engine.ts";
import { atMost, besideRow, withSides, type Bench, type Row, type Scenario, type Side } from "../scenario.ts";
import { percentile } from "../statistics.ts";

const PERCENTILES = { p50: 0.5, p95: 0.95, p99: 0.99 } as const;

/** In the same process, a job may start this much later than its submit call returns. */
const SUBMIT_TIMES_MAX = 1.2;

export const pickUp: Scenario = {
  name: "pick-up",
  about: "from the call of submit to the start of the handler at 100 jobs/s with random gaps",
  goals: ["sqlite", "postgres"],
  async run(bench) {
    const { engine } = bench;
    const sides = {
      ours: await openOurs(await engine.place("ours")),
      floor: await engine.floor(await engine.place("floor")),
      busy: await openOurs(await engine.place("busy")),
    };
    const rows = await withSides(sides, async ({ ours, floor, busy }) => [
      await besideSubmit(bench, ours, busy),
      ...(await compareWaits(bench, "in one process", { ours: [ours, ours], floor: [floor, floor] })),
    ]);
    return engine.shared ? [...rows, ...(await betweenProcesses(bench, engine))] : rows;
  },
};

/** Beside the call of submit alone: on a node whose workers are busy. */
async function besideSubmit(bench: Bench, ours: Side, busy: Side): Promise<Row> {
  const jobs = bench.quick ? 100 : 250;
  const rounds = bench.quick ? 2 : 6;
  const waited: number[] = [];
  const called: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    await waits([ours, ours], 500, 100, true); // compiles the code
    waited.push(...(await waits([ours, ours], 100, jobs, false)));
    await busy.call("reset");
    await busy.call("produce", { perSecond: 500, jobs: 100 });
    called.push(...(await busy.call("produce", { perSecond: 100, jobs })));
    bench.say(`beside the submit call, round ${round} of ${rounds}`);
  }
  const p50s = { ours: percentile(waited, 0.5), floor: percentile(called, 0.5) };
  const more = { beside: "submit call alone", goal: atMost(SUBMIT_TIMES_MAX) };
  return besideRow("pick-up in one process, p50", "ms", p50s, more);
}

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
  return Object.entries(PERCENTILES).map(([name, share]) => {
    const compared = { ours: percentile(waited.ours, share), floor: percentile(waited.floor, share) };
    return besideRow(`pick-up ${where}, ${name} beside the floor`, "ms", compared);
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

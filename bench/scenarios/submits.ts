import type { Sample } from "../actions.ts";
import { ours as openOurs } from "../engine.ts";
import { atLeast, interleave, rateRow, WARM_MS, withSides } from "../scenario.ts";
import type { Bench, Row, Scenario, Side } from "../scenario.ts";

const SHARE_MIN = { sqlite: 0.5, postgres: 0.8 } as const;
const BULK_SHARE_MIN = { sqlite: 0.6, postgres: 0.5 } as const;

export const submits: Scenario = {
  name: "submits",
  about:
    "50 concurrent callers, each of which awaits its submit; the floor puts the INSERTs of one turn in one commit",
  goals: ["postgres"],
  run: (bench) =>
    compareSubmits(bench, "submits, 50 callers", SHARE_MIN, (side, ms) =>
      side.call("submitFor", { callers: 50, ms }),
    ),
};

export const bulk: Scenario = {
  name: "bulk",
  about: "one caller who submits 1,000 jobs at a time; the floor is one INSERT … SELECT out of a JSON array",
  goals: ["sqlite"],
  run: (bench) =>
    compareSubmits(bench, "bulk submits of 1,000", BULK_SHARE_MIN, (side, ms) =>
      side.call("bulkFor", { size: 1_000, ms }),
    ),
};

async function compareSubmits(
  bench: Bench,
  figure: string,
  shareMin: Readonly<Record<Bench["engine"]["name"], number>>,
  submit: (side: Side, ms: number) => Promise<Sample>,
): Promise<Row[]> {
  const { engine, quick } = bench;
  const ours = await openOurs(await engine.place("ours"));
  const floor = await engine.floor(await engine.place("floor"));
  return withSides({ ours, floor }, async (sides) => {
    const results = await interleave<keyof typeof sides, Side, Sample>(bench, sides, async (side) => {
      await side.call("reset");
      await submit(side, WARM_MS);
      return submit(side, quick ? 200 : 300);
    });
    return [rateRow(figure, results.ours, results.floor, { goal: atLeast(shareMin[engine.name]) })];
  });
}

import { ours as openOurs } from "../engine.ts";
import { interleave, rateRow, WARM_MS, withSides, type Scenario } from "../scenario.ts";

const SHARE_MIN = 0.9;

export const history: Scenario = {
  name: "history",
  about:
    "the hot path with a million finished jobs in the store, beside a store without them (shown as its floor)",
  async run(bench) {
    const { engine } = bench;
    const before = bench.quick ? 50_000 : 1_000_000;
    const jobs = bench.quick ? 15_000 : 30_000;
    const count = before.toLocaleString("en-US");
    const place = await engine.place("full");
    await engine.seedHistory(place, before);
    bench.say(`${count} finished jobs are there`);
    const full = await openOurs(place, { onReset: "keep" });
    const empty = await openOurs(await engine.place("empty"), { onReset: "leave" });
    return withSides({ full, empty }, async (sides) => {
      const results = await interleave(bench, sides, async (side) => {
        await side.call("settle");
        const drained = await side.call("drain", { jobs });
        await side.call("settle");
        await side.call("submitFor", { callers: 50, ms: WARM_MS });
        const submitted = await side.call("submitFor", { callers: 50, ms: bench.quick ? 200 : 300 });
        await side.call("finish");
        return { drained, submitted };
      });
      return (["drained", "submitted"] as const).map((what) => {
        const row = rateRow(
          `${what === "drained" ? "drain" : "submits"} with ${count} finished before`,
          results.full.map((result) => result[what]),
          results.empty.map((result) => result[what]),
          SHARE_MIN,
        );
        return { ...row, target: { ...row.target!, text: `${row.target!.text} of none` } };
      });
    });
  },
};

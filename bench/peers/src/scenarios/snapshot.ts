// (6) A transaction elsewhere holds an old snapshot, as a backup or a forgotten psql does: does the pick-up become slower?
import pg from "pg";
import { Host } from "../host.ts";
import type { Scenario } from "../scenario.ts";
import { databaseName } from "../servers.ts";
import { num, percentiles, sleep } from "../util.ts";

const RATE = 1500;
/** In groups, because not every contender commits that many single jobs a second. */
const GROUP = 15;
/** Before the snapshot is taken, and the length of each slice that is compared. */
const SLICE_S = 10;

export const snapshot: Scenario = {
  name: "snapshot",
  about: `pick-up at ${RATE} jobs/s while another transaction holds a snapshot (100 s; --scale 6 for 10 minutes)`,
  async run(bench) {
    const seconds = Math.round((bench.quick ? 20 : 100) * bench.scale);
    const out: Record<string, { before: number; slices: number[]; growth: number; ran: number; of: number }> =
      {};
    for (const e of bench.entries.filter((x) => x.store === "postgres")) {
      const producer = await Host.open(e, bench.servers.context);
      await producer.call("reset");
      const worker = await Host.open(e, bench.servers.context);
      const total = RATE * (seconds + SLICE_S);
      await worker.call("work", { mode: "latency", total });
      const url = new URL(bench.servers.context.pgUrl);
      url.pathname = `/${databaseName(e.name)}`;
      const holder = new pg.Client({ connectionString: url.href });
      try {
        const read = async (): Promise<number[]> =>
          (await worker.call<{ latencies: number[] }>("report")).latencies;
        await producer.call("produce", { rate: RATE, count: RATE * SLICE_S, group: GROUP });
        await sleep(1000);
        const first = await read();
        await holder.connect();
        await holder.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
        await holder.query("SELECT count(*) FROM pg_class");
        const slices: number[] = [];
        let seen = first.length;
        for (let s = 0; s < seconds; s += SLICE_S) {
          await producer.call("produce", {
            rate: RATE,
            count: RATE * Math.min(SLICE_S, seconds - s),
            group: GROUP,
          });
          const all = await read();
          slices.push(percentiles(all.slice(seen)).p50);
          seen = all.length;
        }
        await sleep(1000);
        const before = percentiles(first).p50;
        out[e.name] = {
          before,
          slices,
          growth: slices.at(-1)! / before,
          ran: (await read()).length,
          of: total,
        };
      } finally {
        await holder.end();
        await worker.stop();
        await producer.call("reset");
        await producer.stop();
      }
      bench.log(e.name);
    }
    bench.table(
      `Pick-up at ${RATE} jobs/s, p50 in ms, while another transaction holds a snapshot`,
      ["contender", "before", `after ${SLICE_S} s`, `after ${seconds} s`, "growth", "ran", "of"],
      Object.entries(out).map(([name, o]) => [
        name,
        num(o.before, 2),
        num(o.slices[0], 2),
        num(o.slices.at(-1), 2),
        num(o.growth, 2),
        o.ran,
        o.of,
      ]),
    );
    return out;
  },
};

// (2) End to end: a backlog of no-op jobs, one to four worker processes. (4) The same with a million completed jobs kept.
import { Host } from "../host.ts";
import type { Listed } from "../contenders/index.ts";
import type { Bench, Scenario } from "../scenario.ts";
import type { WorkMode } from "../types.ts";
import { num, nowUs, sleep, spread, treeCpuMs, type Spread } from "../util.ts";

export interface Drain {
  rate: number;
  seconds: number;
  workerUsPerJob: number;
  serverUsPerJob: number;
  rssMb: number;
  exactlyOnce: boolean;
  missing: number;
  repeated: number;
  shares: number[];
}

export async function drain(
  bench: Bench,
  e: Listed,
  producer: Host | undefined,
  processes: number,
  jobs: number,
  mode: WorkMode,
  { reset = true, lanes }: { reset?: boolean; lanes?: number } = {},
): Promise<Drain> {
  const { context, pids } = bench.servers;
  const filler = producer ?? (await Host.open(e, context));
  const workers = e.inProcess
    ? [filler]
    : await Promise.all(Array.from({ length: processes }, () => Host.open(e, context)));
  const deadline = Date.now() + 120_000;
  const finish = async (count: number): Promise<void> => {
    while (workers.reduce((a, w) => a + w.progress, 0) < count && Date.now() < deadline) await sleep(2);
    while ((await workers[0]!.call<number>("unfinished")) > 0 && Date.now() < deadline) await sleep(2);
  };
  // A small backlog first, so that the code of every contender is compiled; then a new instance in the same processes.
  if (reset) await filler.call("reset");
  const warm = Math.round(jobs * 0.3);
  await filler.call("fill", { count: warm });
  await Promise.all(workers.map((w) => w.call("work", { mode, total: warm })));
  await finish(warm);
  await Promise.all(workers.map((w) => w.call("reopen")));
  for (const w of workers) w.progress = 0;
  if (reset) await filler.call("reset");
  await filler.call("fill", { count: jobs, lanes });
  const pid = (pids as Record<string, number>)[e.store];
  const before = pid ? treeCpuMs(pid) : 0;
  const t0 = nowUs();
  const ready = workers.map((w) => w.call("work", { mode, total: jobs }));
  await finish(jobs);
  await Promise.all(ready);
  const seconds = (nowUs() - t0) / 1e6;
  const serverMs = pid ? treeCpuMs(pid) - before : 0;
  await sleep(30); // a job run twice would show up now
  const reports = await Promise.all(
    workers.map((w) => w.call<{ count: number; seen: string; cpuMs: number; rssMb: number }>("report")),
  );
  const runs = new Uint32Array(jobs);
  for (const r of reports) Buffer.from(r.seen, "base64").forEach((c, n) => (runs[n]! += c));
  const missing = runs.filter((c) => c === 0).length;
  const repeated = runs.filter((c) => c > 1).length;
  await Promise.all(workers.map((w) => w.stop()));
  return {
    rate: jobs / seconds,
    seconds,
    workerUsPerJob: (reports.reduce((a, r) => a + r.cpuMs, 0) * 1000) / jobs,
    serverUsPerJob: (serverMs * 1000) / jobs,
    rssMb: Math.max(...reports.map((r) => r.rssMb)),
    exactlyOnce: missing === 0 && repeated === 0,
    missing,
    repeated,
    shares: reports.map((r) => r.count),
  };
}

interface Row {
  rate: Spread;
  workerUs: number;
  serverUs: number;
  rssMb: number;
  exactlyOnce: boolean;
  shares: number[];
}

function fold(samples: Drain[]): Row {
  return {
    rate: spread(samples.map((s) => s.rate)),
    workerUs: spread(samples.map((s) => s.workerUsPerJob)).median,
    serverUs: spread(samples.map((s) => s.serverUsPerJob)).median,
    rssMb: spread(samples.map((s) => s.rssMb)).median,
    exactlyOnce: samples.every((s) => s.exactlyOnce),
    shares: samples.at(-1)!.shares,
  };
}

/** `lanes`: the backlog comes from that many callers of the single submit, which not every contender does quickly. */
const VARIANTS = [
  { key: "bulk, 1 worker", processes: 1 },
  { key: "bulk, 2 workers", processes: 2 },
  { key: "bulk, 4 workers", processes: 4 },
  { key: "singles, 1 worker", processes: 1, lanes: 50 },
  { key: "singles, 4 workers", processes: 4, lanes: 50 },
] as const;
/** Of a backlog from the bulk call: single submits take longer. */
const SINGLES = 0.25;

export const drainScenario: Scenario = {
  name: "drain",
  about:
    "drain a backlog of no-op jobs from the bulk call and from single submits, with 1, 2 and 4 worker processes",
  async run(bench) {
    const samples: Record<string, Record<string, Drain[]>> = {};
    const producers = new Map<string, Host>();
    for (const e of bench.entries) {
      samples[e.name] = {};
      if (!e.inProcess) producers.set(e.name, await Host.open(e, bench.servers.context));
    }
    for (let round = 0; round < bench.rounds; round++) {
      for (const e of bench.entries) {
        for (const v of VARIANTS) {
          if (v.processes > (e.processes ?? 4)) continue;
          const lanes = "lanes" in v ? v.lanes : undefined;
          const jobs = Math.round(
            e.drainJobs * (lanes ? SINGLES : 1) * bench.scale * (bench.quick ? 0.3 : 1),
          );
          const d = await drain(bench, e, producers.get(e.name), v.processes, jobs, "throughput", { lanes });
          if (!d.exactlyOnce)
            bench.log(`${e.name}: NOT exactly once: ${d.missing} missing, ${d.repeated} repeated`);
          (samples[e.name]![v.key] ??= []).push(d);
        }
      }
      bench.log(`round ${round + 1}/${bench.rounds}`);
    }
    await Promise.all([...producers.values()].map((h) => h.stop()));
    const keys = VARIANTS.map((v) => v.key);
    const out = Object.fromEntries(
      Object.entries(samples).map(([name, s]) => [
        name,
        Object.fromEntries(Object.entries(s).map(([key, list]) => [key, fold(list)])),
      ]),
    );
    bench.table(
      "Drain of no-op jobs, jobs/s (median)",
      ["contender", "store", ...keys, "exactly once"],
      bench.entries.map((e) => [
        e.name,
        e.store,
        ...keys.map((k) => num(out[e.name]![k]?.rate.median)),
        Object.values(out[e.name]!).every((r) => r.exactlyOnce) ? "yes" : "NO",
      ]),
    );
    bench.table(
      "Drain of no-op jobs, CPU µs a job: workers + server",
      ["contender", ...keys, "RSS MB"],
      bench.entries.map((e) => {
        const rows = keys.map((k) => out[e.name]![k]);
        return [
          e.name,
          ...rows.map((row) => (row ? `${num(row.workerUs, 1)} + ${num(row.serverUs, 1)}` : "–")),
          num(Math.max(...rows.map((row) => row?.rssMb ?? 0))),
        ];
      }),
    );
    bench.ratios(
      "Drain",
      [...keys],
      Object.fromEntries(bench.entries.map((e) => [e.name, keys.map((k) => out[e.name]![k]?.rate.median)])),
    );
    return out;
  },
};

export const history: Scenario = {
  name: "history",
  about: "drain while completed jobs are kept: none before, and a million before",
  async run(bench) {
    const size = bench.quick ? 100_000 : 1_000_000;
    const rounds = Math.min(bench.rounds, 3);
    const out: Record<string, unknown> = {};
    const rows: (string | number)[][] = [];
    for (const e of bench.entries.filter((x) => x.keeps)) {
      const jobs = e.historyJobs ?? Math.round(e.drainJobs * 0.5 * bench.scale * (bench.quick ? 0.5 : 1));
      const empty: Drain[] = [];
      const full: Drain[] = [];
      const seeder = await Host.open(e, bench.servers.context);
      for (let i = 0; i < rounds; i++) empty.push(await drain(bench, e, seeder, 1, jobs, "retain"));
      await seeder.call("reset");
      await sleep(300);
      const before = await seeder.call<number>("storeBytes");
      const t = nowUs();
      await seeder.call("seedHistory", { count: size });
      const seedSeconds = (nowUs() - t) / 1e6;
      const after = await seeder.call<number>("storeBytes");
      for (let i = 0; i < rounds; i++)
        full.push(await drain(bench, e, seeder, 1, jobs, "retain", { reset: false }));
      await seeder.call("reset");
      await seeder.stop();
      const a = fold(empty);
      const b = fold(full);
      const bytes = (after - before) / size;
      out[e.name] = { empty: a, full: b, bytesPerJob: bytes, seedSeconds };
      rows.push([
        e.name,
        e.store,
        num(a.rate.median),
        num(b.rate.median),
        num(b.rate.median / a.rate.median, 2),
        num(bytes),
        num((after - before) / 1e6),
        a.exactlyOnce && b.exactlyOnce ? "yes" : "NO",
      ]);
      bench.log(e.name);
    }
    bench.table(
      `Drain with completed jobs kept, jobs/s: none before, ${num(size)} before`,
      [
        "contender",
        "store",
        "none before",
        `${num(size)} before`,
        "ratio",
        "bytes a job",
        "MB for all",
        "exactly once",
      ],
      rows,
    );
    return out;
  },
};

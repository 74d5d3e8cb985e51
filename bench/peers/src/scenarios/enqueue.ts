// (1) Enqueue throughput: one caller, fifty callers, and the bulk call with 1000 jobs.
import { Host } from "../host.ts";
import type { Scenario } from "../scenario.ts";
import { num, spread, treeCpuMs, type Spread } from "../util.ts";

const MODES = [
  { key: "one", title: "1 caller", lanes: 1, bulk: 1 },
  { key: "fifty", title: "50 callers", lanes: 50, bulk: 1 },
  { key: "bulk", title: "bulk 1000", lanes: 1, bulk: 1000 },
] as const;

interface Sample {
  jobs: number;
  rate: number;
  callMs: { p50: number; p99: number };
  cpuUsPerJob: number;
  serverUsPerJob: number;
}

export const enqueue: Scenario = {
  name: "enqueue",
  about: "enqueue throughput: 1 caller, 50 callers, bulk of 1000",
  async run(bench) {
    const ms = Math.round((bench.quick ? 300 : 500) * bench.scale);
    const { context, pids } = bench.servers;
    const hosts = new Map<string, Host>();
    const samples: Record<string, Record<string, Sample[]>> = {};
    for (const e of bench.entries) {
      hosts.set(e.name, await Host.open(e, context));
      samples[e.name] = { one: [], fifty: [], bulk: [] };
    }
    for (let round = -1; round < bench.rounds; round++) {
      for (const e of bench.entries) {
        const host = hosts.get(e.name)!;
        for (const mode of MODES) {
          await host.call("reset");
          const pid = (pids as Record<string, number>)[e.store];
          const before = pid ? treeCpuMs(pid) : 0;
          const r = await host.call<Sample>("enqueueFor", {
            lanes: mode.lanes,
            bulk: mode.bulk,
            ms: round < 0 ? 300 : ms,
          });
          r.serverUsPerJob = pid ? ((treeCpuMs(pid) - before) * 1000) / r.jobs : 0;
          if (round >= 0) samples[e.name]![mode.key]!.push(r);
        }
        await host.call("reset");
      }
      bench.log(round < 0 ? "warmed up" : `round ${round + 1}/${bench.rounds}`);
    }
    for (const h of hosts.values()) await h.stop();

    const out: Record<
      string,
      Record<string, { rate: Spread; p50: number; p99: number; clientUs: number; serverUs: number }>
    > = {};
    for (const e of bench.entries) {
      out[e.name] = {};
      for (const mode of MODES) {
        const s = samples[e.name]![mode.key]!;
        const mid = (f: (x: Sample) => number) => spread(s.map(f)).median;
        out[e.name]![mode.key] = {
          rate: spread(s.map((x) => x.rate)),
          p50: mid((x) => x.callMs.p50),
          p99: mid((x) => x.callMs.p99),
          clientUs: mid((x) => x.cpuUsPerJob),
          serverUs: mid((x) => x.serverUsPerJob),
        };
      }
    }
    bench.table(
      "Enqueue, jobs/s (median; call p50 ms with 1 and 50 callers; CPU µs a job in the bulk call, client + server)",
      [
        "contender",
        "store",
        "1 caller",
        "p50",
        "50 callers",
        "p50",
        "p99",
        "bulk 1000",
        "client µs",
        "server µs",
      ],
      bench.entries.map((e) => {
        const o = out[e.name]!;
        return [
          e.name,
          e.store,
          num(o.one!.rate.median),
          num(o.one!.p50, 2),
          num(o.fifty!.rate.median),
          num(o.fifty!.p50, 2),
          num(o.fifty!.p99, 2),
          num(o.bulk!.rate.median),
          num(o.bulk!.clientUs, 1),
          num(o.bulk!.serverUs, 1),
        ];
      }),
    );
    bench.ratios(
      "Enqueue",
      ["1 caller", "50 callers", "bulk 1000"],
      Object.fromEntries(
        bench.entries.map((e) => [e.name, MODES.map((m) => out[e.name]![m.key]!.rate.median)]),
      ),
    );
    return out;
  },
};

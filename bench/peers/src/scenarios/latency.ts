// (3) From the enqueue call to the start of the handler in another process, at a low rate.
import { Host } from "../host.ts";
import type { Scenario } from "../scenario.ts";
import { num, percentiles, sleep } from "../util.ts";

const RATE = 100;

export const latency: Scenario = {
  name: "latency",
  about: "enqueue call to handler start at 100 jobs/s",
  async run(bench) {
    const rounds = bench.quick ? 1 : 2;
    const count = Math.round(RATE * (bench.quick ? 2 : 4) * bench.scale);
    // An embedded store is measured twice: with two processes, and with producer and worker in one.
    const list = bench.entries.flatMap((e) => [
      { ...e, title: e.name, one: e.inProcess ?? false },
      ...(e.embedded ? [{ ...e, title: `${e.name}, one process`, one: true }] : []),
    ]);
    const all: Record<string, number[]> = {};
    const calls: Record<string, number[]> = {};
    const cpu: Record<string, number[]> = {};
    const wrong: string[] = [];
    for (const e of list) {
      all[e.title] = [];
      calls[e.title] = [];
      cpu[e.title] = [];
    }
    for (let round = 0; round < rounds; round++) {
      for (const e of list) {
        const producer = await Host.open(e, bench.servers.context);
        await producer.call("reset");
        const worker = e.one ? producer : await Host.open(e, bench.servers.context);
        await worker.call("work", { mode: "latency", total: count + 100 });
        await sleep(300);
        await producer.call("produce", { rate: 200, count: 100 }); // warm up
        await sleep(500);
        const skip = (await worker.call<{ latencies: number[] }>("report")).latencies.length;
        const c = await producer.call<{ p50: number }>("produce", { rate: RATE, count });
        const end = Date.now() + 8000;
        while (worker.progress < count + 100 && Date.now() < end) await sleep(10);
        const r = await worker.call<{ latencies: number[]; count: number; cpuMs: number }>("report");
        if (r.count !== count + 100) wrong.push(`${e.title}: ${r.count} of ${count + 100} runs`);
        all[e.title]!.push(...r.latencies.slice(skip));
        calls[e.title]!.push(c.p50);
        cpu[e.title]!.push(r.cpuMs);
        if (worker !== producer) await worker.stop();
        await producer.stop();
      }
      bench.log(`round ${round + 1}/${rounds}`);
    }
    if (wrong.length) bench.log(`NOT exactly once: ${wrong.join("; ")}`);
    const out = Object.fromEntries(
      list.map((e) => [
        e.title,
        {
          ...percentiles(all[e.title]!),
          enqueueCallP50: percentiles(calls[e.title]!).p50,
          wrong: wrong.filter((w) => w.startsWith(`${e.title}:`)),
        },
      ]),
    );
    bench.table(
      `Latency at ${RATE} jobs/s, ms from the enqueue call to the handler`,
      ["contender", "store", "p50", "p95", "p99", "max", "enqueue call p50", "jobs"],
      list.map((e) => {
        const o = out[e.title]!;
        return [
          e.title,
          e.store,
          num(o.p50, 2),
          num(o.p95, 2),
          num(o.p99, 2),
          num(o.max, 1),
          num(o.enqueueCallP50, 2),
          o.count,
        ];
      }),
    );
    bench.ratios(
      "Latency (less is better)",
      ["p50", "p95", "p99"],
      Object.fromEntries(
        list.map((e) => [e.title, [out[e.title]!.p50, out[e.title]!.p95, out[e.title]!.p99]]),
      ),
    );
    return out;
  },
};

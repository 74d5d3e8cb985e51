// A process that plays producer, worker or scheduler for one contender, told what to do over IPC.
import type { Contender, Context, Entry, Job, WorkMode } from "./types.ts";
import { nowUs, PAD, percentiles, sleep } from "./util.ts";

let contender: Contender;
let create: () => Contender;
let ticker: NodeJS.Timeout | undefined;
let seen = new Uint8Array(0);
let count = 0;
let latencies: number[] = [];
let cpu = process.cpuUsage();

const send = (message: unknown): void => void process.send!(message);
const job = (n: number): Job => ({ n, t: nowUs(), pad: PAD });

const commands: Record<string, (a: any) => Promise<unknown>> = {
  async open(a: { module: string; name: string; context: Context }) {
    const { entries } = (await import(a.module)) as { entries: Entry[] };
    const entry = entries.find((e) => e.name === a.name)!;
    create = () => entry.create(a.context);
    contender = create();
    await contender.start();
  },

  /** A new instance in the same, by now warm, process. */
  async reopen() {
    clearInterval(ticker);
    await contender.stop();
    contender = create();
    await contender.start();
  },

  reset: () => contender.reset(),
  unfinished: () => contender.unfinished(),
  seedHistory: (a: { count: number }) => contender.seedHistory!(a.count),
  storeBytes: () => contender.storeBytes!(),

  /** With the bulk call, or with `lanes` callers that submit one job at a time. */
  async fill(a: { count: number; lanes?: number }) {
    if (a.lanes) {
      let next = 0;
      const lane = async (): Promise<void> => {
        while (next < a.count) await contender.enqueue(job(next++));
      };
      await Promise.all(Array.from({ length: a.lanes }, lane));
      return;
    }
    for (let n = 0; n < a.count; n += 1000) {
      const batch: Job[] = [];
      for (let i = n; i < Math.min(n + 1000, a.count); i++) batch.push(job(i));
      await contender.enqueueMany(batch);
    }
  },

  /** `lanes` callers, each awaiting its call before the next, for `ms`. */
  async enqueueFor(a: { lanes: number; ms: number; bulk: number }) {
    const started = nowUs();
    const end = started + a.ms * 1000;
    const before = process.cpuUsage();
    const calls: number[] = [];
    let n = 0;
    const lane = async (): Promise<void> => {
      for (;;) {
        const t = nowUs();
        if (t >= end) return;
        if (a.bulk > 1) {
          const batch: Job[] = [];
          for (let i = 0; i < a.bulk; i++) batch.push(job(n++));
          await contender.enqueueMany(batch);
        } else {
          await contender.enqueue(job(n++));
        }
        calls.push((nowUs() - t) / 1000);
      }
    };
    await Promise.all(Array.from({ length: a.lanes }, lane));
    const seconds = (nowUs() - started) / 1e6;
    const used = process.cpuUsage(before);
    return {
      jobs: n,
      rate: n / seconds,
      callMs: percentiles(calls),
      cpuUsPerJob: (used.user + used.system) / n,
    };
  },

  async work(a: { mode: WorkMode; total: number; hang?: boolean }) {
    seen = new Uint8Array(a.total);
    count = 0;
    latencies = [];
    cpu = process.cpuUsage();
    let told = 0;
    ticker = setInterval(() => {
      if (count === told) return;
      told = count;
      send({ event: "progress", count });
    }, 5);
    await contender.work(a.mode, (j) => {
      if (a.mode === "latency") latencies.push((nowUs() - j.t) / 1000);
      if (j.n < seen.length) seen[j.n]!++;
      count++;
      if (a.mode.startsWith("recover")) send({ event: "started", at: nowUs() });
      if (a.hang) return new Promise<void>(() => {});
      return undefined;
    });
  },

  async report() {
    const used = process.cpuUsage(cpu);
    return {
      count,
      seen: Buffer.from(seen).toString("base64"),
      cpuMs: (used.user + used.system) / 1000,
      rssMb: process.resourceUsage().maxRSS / 1024,
      latencies,
    };
  },

  /** Enqueues groups at a steady but jittered rate, so that no poll interval falls into step with it. */
  async produce(a: { rate: number; count: number; group?: number }) {
    const group = a.group ?? 1;
    const gap = (1000 * group) / a.rate;
    const start = performance.now();
    const calls: Promise<number>[] = [];
    for (let n = 0; n < a.count; n += group) {
      const due = start + (n / group) * gap + Math.random() * gap;
      const wait = due - performance.now();
      if (wait > 0) await sleep(wait);
      const jobs = Array.from({ length: Math.min(group, a.count - n) }, (_, i) => job(n + i));
      const call = group === 1 ? contender.enqueue(jobs[0]!) : contender.enqueueMany(jobs);
      calls.push(call.then(() => (nowUs() - jobs[0]!.t) / 1000));
    }
    return percentiles(await Promise.all(calls));
  },

  async enqueueOne() {
    await contender.enqueue(job(0));
  },

  async stop() {
    await contender?.stop();
  },
};

process.on("message", (m: { id: number; cmd: string; args: unknown }) => {
  void (async () => {
    try {
      send({ id: m.id, ok: (await commands[m.cmd]!(m.args)) ?? null });
      if (m.cmd === "stop") process.exit(0);
    } catch (error) {
      send({ id: m.id, err: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  })();
});
process.on("disconnect", () => process.exit(0));
process.on("unhandledRejection", (e) => send({ event: "problem", text: String((e as Error)?.stack ?? e) }));
send({ event: "up" });

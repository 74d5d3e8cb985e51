// (5) kill -9 of the worker that runs a job: when does another worker get that job?
import { Host } from "../host.ts";
import type { Listed } from "../contenders/index.ts";
import type { Bench, Scenario } from "../scenario.ts";
import { num, nowUs, sleep } from "../util.ts";

const CAP_MS = 100_000;

async function trial(
  bench: Bench,
  e: Listed,
  mode: "recover-default" | "recover-tight",
): Promise<number | null> {
  const { context } = bench.servers;
  const producer = await Host.open(e, context);
  await producer.call("reset");
  const first = await Host.open(e, context);
  await first.call("work", { mode, total: 1, hang: true });
  const taken = first.event("started", 30_000);
  await producer.call("enqueueOne");
  if (!(await taken)) throw new Error(`${e.name}: the first worker never got the job`);
  const second = await Host.open(e, context);
  await second.call("work", { mode, total: 1 });
  await sleep(1500);
  if (second.progress > 0) bench.log(`${e.name}: the second worker ran the job while the first was alive`);
  const got = second.event<{ at: number }>("started", CAP_MS);
  const t0 = nowUs();
  first.kill("SIGKILL");
  const event = await got;
  await second.stop();
  await producer.call("reset");
  await producer.stop();
  return event ? (event.at - t0) / 1000 : null;
}

export const recover: Scenario = {
  name: "recover",
  about: "kill -9 of a worker in the middle of a job: time until another worker gets it",
  async run(bench) {
    const out: Record<string, { default: (number | null)[] | string; tight: (number | null)[] | string }> =
      {};
    const trials = bench.quick ? 1 : 3;
    const names = bench.entries.filter((e) => e.recovery && !e.inProcess);
    // They only wait, so they wait side by side. Defaults and tight settings share a store, so one after the other.
    await Promise.all(
      names.map(async (e) => {
        const o = (out[e.name] = {
          default: e.recovery!.default,
          tight: e.recovery!.tight ?? "not supported",
        } as (typeof out)[string]);
        if (e.recovery!.tight) {
          const values: (number | null)[] = [];
          for (let i = 0; i < trials; i++) values.push(await trial(bench, e, "recover-tight"));
          o.tight = values;
        }
        if (e.recovery!.measureDefault && bench.all) o.default = [await trial(bench, e, "recover-default")];
        bench.log(e.name);
      }),
    );
    const show = (v: (number | null)[] | string) =>
      typeof v === "string"
        ? v
        : v.map((x) => (x === null ? `> ${CAP_MS / 1000}` : num(x / 1000, 2))).join(", ");
    bench.table(
      "Worker killed while running a job: seconds until another worker starts it",
      ["contender", "at the defaults", "tight", "tight settings"],
      names.map((e) => [
        e.name,
        show(out[e.name]!.default),
        show(out[e.name]!.tight),
        e.recovery!.tight ?? "–",
      ]),
    );
    return out;
  },
};

import { Actor } from "../actor.ts";
import type { HttpSide } from "../http-side.ts";
import type { Generator } from "../load.ts";
import { atLeast, compare, type Row, type Scenario } from "../scenario.ts";
import { median } from "../statistics.ts";

const CONNECTIONS = 50;
/** Jobs in one request. */
const BATCH = 100;
const SHARE_MIN = 0.8;
const BATCH_TIMES_MIN = 3;

export const http: Scenario = {
  name: "http",
  about: "POST /jobs on 50 connections; the floor is a bare Fastify route that validates the same body",
  only: "sqlite",
  goals: ["sqlite"],
  async run(bench) {
    const rounds = Math.min(bench.rounds, bench.quick ? 1 : 5);
    const load = await Actor.open<Generator>("./load.ts");
    const sides = {
      floor: await Actor.open<HttpSide>("./floors/fastify.ts"),
      stored: await Actor.open<HttpSide>("./baton-server.ts", {
        ...(await bench.engine.place("stored")),
        run: false,
      }),
      run: await Actor.open<HttpSide>("./baton-server.ts", {
        ...(await bench.engine.place("run")),
        run: true,
      }),
    };
    const turns = {
      floor: { side: sides.floor, batch: 1 },
      stored: { side: sides.stored, batch: 1 },
      batches: { side: sides.stored, batch: BATCH },
      run: { side: sides.run, batch: 1 },
    };
    const rates: Record<keyof typeof turns, number[]> = { floor: [], stored: [], batches: [], run: [] };
    const cpuUs: Record<keyof typeof turns, number[]> = { floor: [], stored: [], batches: [], run: [] };
    try {
      for (let round = -1; round < rounds; round++) {
        for (const [name, { side, batch }] of entriesOf(turns)) {
          const url = await side.call("reset");
          await side.call("startMeter");
          const press = { url, connections: CONNECTIONS, seconds: 1, batch };
          const { perSecond, requests } = await load.call("press", press);
          const us = await side.call("readMeter");
          if (round < 0) continue;
          rates[name].push(perSecond * batch);
          cpuUs[name].push(us / requests / batch);
        }
        bench.say(round < 0 ? "warmed up" : `round ${round + 1} of ${rounds}`);
      }
    } finally {
      await Promise.all([load.stop(), ...Object.values(sides).map((side) => side.stop())]);
    }
    const row = (figure: string, name: keyof typeof turns, beside: keyof typeof turns): Row => ({
      figure,
      unit: "jobs/s",
      ...compare(rates[name], rates[beside]),
      cpuUs: {
        ours: { own: median(cpuUs[name]), server: null },
        floor: { own: median(cpuUs[beside]), server: null },
      },
      target: null,
    });
    const stored = row(`POST /jobs, ${CONNECTIONS} connections`, "stored", "floor");
    const batches = row(`POST /jobs of ${BATCH} at a time`, "batches", "stored");
    return [
      { ...stored, beside: "bare Fastify", target: atLeast(SHARE_MIN, stored.ratio!) },
      { ...row("  while the jobs run as well", "run", "floor"), beside: "bare Fastify" },
      { ...batches, beside: "one at a time", target: atLeast(BATCH_TIMES_MIN, batches.ratio!) },
    ];
  },
};

function entriesOf<T extends object>(object: T): [keyof T, T[keyof T]][] {
  return Object.entries(object) as [keyof T, T[keyof T]][];
}

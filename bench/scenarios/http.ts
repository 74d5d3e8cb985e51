import { Actor } from "../actor.ts";
import type { HttpSide } from "../http-side.ts";
import type { Generator } from "../load.ts";
import { atLeast, compare, type Row, type Scenario } from "../scenario.ts";
import { median } from "../statistics.ts";

const CONNECTIONS = 50;

export const http: Scenario = {
  name: "http",
  about: "POST /jobs on 50 connections; the floor is a bare Fastify route that validates the same body",
  embeddedOnly: true,
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
    const names = ["floor", "stored", "run"] as const;
    const rates = { floor: [] as number[], stored: [] as number[], run: [] as number[] };
    const cpuUs = { floor: [] as number[], stored: [] as number[], run: [] as number[] };
    try {
      for (let round = -1; round < rounds; round++) {
        for (const name of names) {
          const side = sides[name];
          const url = await side.call("reset");
          await side.call("startMeter");
          const press = { url, connections: CONNECTIONS, seconds: 1 };
          const { perSecond, requests } = await load.call("press", press);
          const us = await side.call("readMeter");
          if (round < 0) continue;
          rates[name].push(perSecond);
          cpuUs[name].push(us / requests);
        }
        bench.say(round < 0 ? "warmed up" : `round ${round + 1} of ${rounds}`);
      }
    } finally {
      await Promise.all([load.stop(), ...names.map((name) => sides[name].stop())]);
    }
    return (["stored", "run"] as const).map((name): Row => {
      const compared = compare(rates[name], rates.floor);
      return {
        figure: name === "stored" ? "POST /jobs, 50 connections" : "  while the jobs run as well",
        unit: "req/s",
        ...compared,
        cpuUs: {
          ours: { own: median(cpuUs[name]), server: null },
          floor: { own: median(cpuUs.floor), server: null },
        },
        target: name === "stored" ? atLeast(0.6, compared.ratio) : null,
      };
    });
  },
};

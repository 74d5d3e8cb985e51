import { randomBytes } from "node:crypto";
import { Actor } from "../actor.ts";
import type { HttpSide } from "../http-side.ts";
import type { Generator } from "../load.ts";
import { atLeast, compare, type Row, type Scenario } from "../scenario.ts";
import { median } from "../statistics.ts";

const CONNECTIONS = 50;
const WAYS = ["", "/http", "/mesh"] as const;
type Way = (typeof WAYS)[number];

export const hop: Scenario = {
  name: "hop",
  about:
    "an echo on 50 connections, passed on to a second process; the floor is the same echo where it arrives",
  only: "sqlite",
  async run(bench) {
    const rounds = Math.min(bench.rounds, bench.quick ? 2 : 5);
    const secret = randomBytes(32).toString("base64url");
    const load = await Actor.open<Generator>("./load.ts");
    const owner = await Actor.open<HttpSide>("./hop.ts", { secret });
    const ingress = await Actor.open<HttpSide>("./hop.ts", { secret, ownerUrl: await owner.call("reset") });
    const rates: Record<Way, number[]> = { "": [], "/http": [], "/mesh": [] };
    const cpuUs: Record<Way, number[]> = { "": [], "/http": [], "/mesh": [] };
    try {
      const url = await ingress.call("reset");
      for (let round = -1; round < rounds; round++) {
        for (const way of WAYS) {
          await Promise.all([ingress.call("startMeter"), owner.call("startMeter")]);
          const press = { url: url + way, connections: CONNECTIONS, seconds: 1 };
          const { perSecond, requests } = await load.call("press", press);
          const us = (await ingress.call("readMeter")) + (await owner.call("readMeter"));
          if (round < 0) continue;
          rates[way].push(perSecond);
          cpuUs[way].push(us / requests);
        }
        bench.say(round < 0 ? "warmed up" : `round ${round + 1} of ${rounds}`);
      }
    } finally {
      await Promise.all([load.stop(), ingress.stop(), owner.stop()]);
    }
    return (["/mesh", "/http"] as const).map((way): Row => {
      const compared = compare(rates[way], rates[""]);
      return {
        figure:
          way === "/mesh"
            ? "one hop by the mesh, 50 connections"
            : "  by a pool of HTTP connections, unsigned",
        unit: "req/s",
        ...compared,
        cpuUs: {
          ours: { own: median(cpuUs[way]), server: null },
          floor: { own: median(cpuUs[""]), server: null },
        },
        target: way === "/mesh" ? atLeast(0.6, compared.ratio) : null,
      };
    });
  },
};

import { Actor } from "../actor.ts";
import type { HttpSide } from "../http-side.ts";
import type { Generator } from "../load.ts";
import { press, pressRow } from "../pressed.ts";
import { atLeast, interleave, withSides, type Scenario } from "../scenario.ts";

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
  async run({ engine, quick, rounds, say }) {
    const node = async (run: boolean): Promise<Actor<HttpSide>> =>
      Actor.open("./baton-server.ts", { ...(await engine.place("node")), run });
    const sides = {
      load: await Actor.open<Generator>("./load.ts"),
      floor: await Actor.open<HttpSide>("./floors/fastify.ts"),
      stored: await node(false),
      run: await node(true),
    };
    return withSides(sides, async ({ load, floor, stored, run }) => {
      const ways = {
        floor: { server: floor, batch: 1 },
        stored: { server: stored, batch: 1 },
        batches: { server: stored, batch: BATCH },
        run: { server: run, batch: 1 },
      };
      const some = { rounds: Math.min(rounds, quick ? 1 : 5), say };
      const turns = await interleave(some, ways, async ({ server, batch }) => {
        const url = await server.call("reset");
        return press(load, { url, connections: CONNECTIONS, batch, servers: [server] });
      });
      const beside = "bare Fastify";
      return [
        pressRow(`POST /jobs, ${CONNECTIONS} connections`, "jobs/s", turns.stored, turns.floor, {
          beside,
          goal: atLeast(SHARE_MIN),
        }),
        pressRow("  while the jobs run as well", "jobs/s", turns.run, turns.floor, { beside }),
        pressRow(`POST /jobs of ${BATCH} at a time`, "jobs/s", turns.batches, turns.stored, {
          beside: "one at a time",
          goal: atLeast(BATCH_TIMES_MIN),
        }),
      ];
    });
  },
};

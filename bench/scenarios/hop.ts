import { randomBytes } from "node:crypto";
import { Actor } from "../actor.ts";
import type { HttpSide } from "../http-side.ts";
import type { Generator } from "../load.ts";
import { press, pressRow } from "../pressed.ts";
import { atLeast, interleave, withSides, type Scenario } from "../scenario.ts";

const CONNECTIONS = 50;
const SHARE_MIN = 0.6;

export const hop: Scenario = {
  name: "hop",
  about:
    "an echo on 50 connections, passed on to a second process; the floor is the same echo where it arrives",
  only: "sqlite",
  async run({ quick, rounds, say }) {
    const secret = randomBytes(32).toString("base64url");
    const owner = await Actor.open<HttpSide>("./hop.ts", { secret });
    const ingress = await Actor.open<HttpSide>("./hop.ts", { secret, ownerUrl: await owner.call("reset") });
    const load = await Actor.open<Generator>("./load.ts");
    return withSides({ load, ingress, owner }, async () => {
      const url = await ingress.call("reset");
      const ways = { floor: url, http: `${url}/http`, mesh: `${url}/mesh` };
      const some = { rounds: Math.min(rounds, quick ? 2 : 5), say };
      const turns = await interleave(some, ways, (way) =>
        press(load, { url: way, connections: CONNECTIONS, servers: [ingress, owner] }),
      );
      const goal = atLeast(SHARE_MIN);
      return [
        pressRow("one hop by the mesh, 50 connections", "req/s", turns.mesh, turns.floor, { goal }),
        pressRow("  by a pool of HTTP connections, unsigned", "req/s", turns.http, turns.floor),
      ];
    });
  },
};

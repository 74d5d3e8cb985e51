import { RedisServer } from "../../test/support/redis-server.ts";
import { Actor } from "../actor.ts";
import type { ChannelsSide } from "../channels.ts";
import { atLeast, interleave, rateRow, withSides, type Scenario } from "../scenario.ts";

const SHARE_MIN = 0.33;

export const channels: Scenario = {
  name: "channels",
  about: "small messages through a queue on Redis; the floor is bare XADD, XREADGROUP, XACK and XDEL",
  only: "sqlite",
  async run({ quick, rounds, say }) {
    const messages = quick ? 20_000 : 100_000;
    const server = await RedisServer.start();
    const open = (bare: boolean): Promise<Actor<ChannelsSide>> =>
      Actor.open("./channels.ts", { url: server.url(), serverPid: server.pid, bare });
    try {
      return await withSides({ ours: await open(false), bare: await open(true) }, async (sides) => {
        const { ours, bare } = await interleave({ rounds: Math.min(rounds, 5), say }, sides, (side) =>
          side.call("pass", messages),
        );
        const figure = "messages through a queue on Redis";
        return [rateRow(figure, ours, bare, { goal: atLeast(SHARE_MIN) }, "messages/s")];
      });
    } finally {
      await server.stop();
    }
  },
};

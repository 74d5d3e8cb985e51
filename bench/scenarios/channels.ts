import { RedisServer } from "../../test/support/redis-server.ts";
import { Actor } from "../actor.ts";
import type { ChannelsSample, ChannelsSide } from "../channels.ts";
import { atLeast, compare, type CpuUs, type Scenario } from "../scenario.ts";
import { median } from "../statistics.ts";

export const channels: Scenario = {
  name: "channels",
  about: "small messages through a queue on Redis; the floor is bare XADD, XREADGROUP, XACK and XDEL",
  only: "sqlite",
  async run(bench) {
    const messages = bench.quick ? 20_000 : 100_000;
    const rounds = Math.min(bench.rounds, 5);
    const server = await RedisServer.start();
    const sides: Actor<ChannelsSide>[] = [];
    const samples: [ChannelsSample[], ChannelsSample[]] = [[], []];
    try {
      for (const bare of [false, true]) {
        const options = { url: server.url(), serverPid: server.pid, bare };
        sides.push(await Actor.open<ChannelsSide>("./channels.ts", options));
      }
      for (let round = -1; round < rounds; round++) {
        for (const [i, side] of sides.entries()) {
          const sample = await side.call("pass", messages);
          if (round >= 0) samples[i]!.push(sample);
        }
        bench.say(round < 0 ? "warmed up" : `round ${round + 1} of ${rounds}`);
      }
    } finally {
      await Promise.all(sides.map((side) => side.stop()));
      await server.stop();
    }
    const [ours, bare] = samples;
    const compared = compare(
      ours.map(({ perSecond }) => perSecond),
      bare.map(({ perSecond }) => perSecond),
    );
    return [
      {
        figure: "messages through a queue on Redis",
        unit: "messages/s",
        ...compared,
        cpuUs: { ours: cpuOf(ours), floor: cpuOf(bare) },
        target: atLeast(0.33, compared.ratio),
      },
    ];
  },
};

function cpuOf(samples: readonly ChannelsSample[]): CpuUs {
  const server = samples.flatMap(({ serverUs }) => serverUs ?? []);
  return {
    own: median(samples.map(({ cpuUs }) => cpuUs)),
    server: server.length === 0 ? null : median(server),
  };
}

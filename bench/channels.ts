/** Both ends of a queue in one process: ours through the keeper, the floor with bare commands on two connections. */

import { createClient } from "@redis/client";
import { RedisChannels } from "../src/channels/redis/channels.ts";
import { systemClock } from "../src/platform/clock.ts";
import { systemRandom } from "../src/platform/random.ts";
import { sampleOf, type Sample } from "./actions.ts";

export interface ChannelsOptions {
  readonly url: string;
  readonly serverPid: number;
  readonly bare: boolean;
}

export interface ChannelsSide {
  /** Messages that are sent in groups, as many groups at a time, and handled in batches. */
  pass(messages: number): Promise<Sample>;
  close(): Promise<void>;
}

const GROUP = 100;
const SENDERS = 4;
const BATCH = 100;

interface Way {
  send(group: readonly Body[]): Promise<void>;
  /** Resolves when so many have been handled. */
  handled(count: number): Promise<void>;
  close(): Promise<void>;
}

interface Body {
  readonly jobId: string;
  readonly jobEpoch: number;
  readonly status: string;
}

export async function open({ url, serverPid, bare }: ChannelsOptions): Promise<ChannelsSide> {
  const way = bare ? await bareWay(url) : await ourWay(url);
  let total = 0;
  return {
    pass: (messages) =>
      sampleOf(serverPid, async () => {
        const handled = way.handled(messages);
        let left = messages / GROUP;
        const sending = Array.from({ length: SENDERS }, async () => {
          while (left-- > 0) {
            const group = Array.from({ length: GROUP }, () => ({
              jobId: `node-a-0198b3c2-1111-7222-8333-${String(++total).padStart(12, "0")}`,
              jobEpoch: 1,
              status: "completed",
            }));
            await way.send(group);
          }
        });
        await Promise.all([...sending, handled]);
        return messages;
      }),
    close: () => way.close(),
  };
}

/** Counts, and tells when there are enough. */
class Count {
  #left = 0;
  #done: () => void = () => {};

  add(handled: number): void {
    this.#left -= handled;
    if (this.#left === 0) this.#done();
  }

  wait(count: number): Promise<void> {
    this.#left = count;
    return new Promise((resolve) => (this.#done = resolve));
  }
}

async function ourWay(url: string): Promise<Way> {
  const options = { url, clock: systemClock, random: systemRandom, prefix: "ours" };
  const [here, there] = [new RedisChannels(options), new RedisChannels(options)];
  await Promise.all([here.start(), there.start()]);
  const count = new Count();
  there.consume("q", async (batch) => count.add(batch.length), { batchMax: BATCH });
  return {
    send: (group) =>
      here.send(
        "q",
        group.map((body) => ({ key: body.jobId, body })),
      ),
    handled: (messages) => count.wait(messages),
    close: async () => void (await Promise.all([here.stop(), there.stop()])),
  };
}

async function bareWay(url: string): Promise<Way> {
  const [here, there] = [createClient({ url, RESP: 3 }), createClient({ url, RESP: 3 })];
  for (const client of [here, there]) client.on("error", () => {});
  await Promise.all([here.connect(), there.connect()]);
  await here.sendCommand(["XGROUP", "CREATE", "bare", "g", "0", "MKSTREAM"]);
  const count = new Count();
  let over = false;
  const reading = (async () => {
    while (!over) {
      const read = ["XREADGROUP", "GROUP", "g", "c", "COUNT", String(BATCH), "BLOCK", "100"];
      const streams = (await there.sendCommand([...read, "STREAMS", "bare", ">"])) as unknown as Readonly<
        Record<string, [id: string, fields: string[]][]>
      > | null;
      const entries = streams?.["bare"] ?? [];
      if (entries.length === 0) continue;
      for (const [, fields] of entries) JSON.parse(fields[3]!);
      const ids = entries.map(([id]) => id);
      await Promise.all([
        there.sendCommand(["XACK", "bare", "g", ...ids]),
        there.sendCommand(["XDEL", "bare", ...ids]),
      ]);
      count.add(entries.length);
    }
  })();
  return {
    async send(group) {
      await Promise.all(
        group.map((body) =>
          here.sendCommand(["XADD", "bare", "*", "key", body.jobId, "data", JSON.stringify(body)]),
        ),
      );
    },
    handled: (messages) => count.wait(messages),
    async close() {
      over = true;
      await reading;
      here.destroy();
      there.destroy();
    },
  };
}

/** What the tests of channels on a server share: the world of a server, and what holds for every server. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SharedChannelsOptions } from "../../../src/channels/base-channels.ts";
import type { Channels } from "../../../src/channels/channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { type ChannelsWorld, message, messages, openDoors, quiet, Reader, until } from "./world.ts";

/** A server, and channels on it that are stopped whatever happens. */
export abstract class ServedWorld<Opened extends Channels, Options extends SharedChannelsOptions> {
  readonly #make: new (options: Options) => Opened;
  readonly #opened = new Set<Opened>();

  constructor(make: new (options: Options) => Opened) {
    this.#make = make;
  }

  abstract get url(): string;

  /** Not started yet. */
  channels(options: Partial<Options> = {}): Opened {
    const system = { url: this.url, clock: systemClock, random: systemRandom };
    const channels = new this.#make({ ...system, ...options } as Options);
    this.#opened.add(channels);
    return channels;
  }

  async started(options: Partial<Options> = {}): Promise<Opened> {
    const channels = this.channels(options);
    await channels.start();
    return channels;
  }

  protected async stopAll(): Promise<void> {
    openDoors();
    await Promise.all([...this.#opened].map((channels) => channels.stop()));
    this.#opened.clear();
  }
}

/** Channels, what they said, and what their subscriber heard. */
export class Watched<Opened extends Channels> {
  readonly channels: Opened;
  readonly warned: string[] = [];
  readonly heard: unknown[] = [];
  gaps = 0;

  constructor(open: (options: Pick<SharedChannelsOptions, "log" | "onGap">) => Opened) {
    this.channels = open({
      log: { info() {}, warn: (_, text) => void this.warned.push(text) },
      onGap: () => this.gaps++,
    });
  }

  async start(): Promise<this> {
    await this.channels.start();
    this.channels.subscribe("t", ({ body }) => void this.heard.push(body));
    return this;
  }

  /** Publishes from elsewhere until it is heard: the first ones may fail, or be published into the gap. */
  async hears(from: Channels, body: string): Promise<void> {
    await until(`to hear ${body}`, () => {
      void from.publish("t", [message(body)]).catch(() => {});
      return this.heard.includes(body);
    });
  }
}

/** `clusters`: several on one server, kept apart by their options. */
export function servedChannels(
  name: string,
  open: () => Channels,
  clusters: () => Promise<readonly ChannelsWorld[]>,
): void {
  test("two clusters on one server do not hear each other", async () => {
    const all = await clusters();
    const heard = all.map(({ there }) => {
      const reader = new Reader();
      const topic: unknown[] = [];
      there.consume("q", reader.handle);
      there.subscribe("t", ({ body }) => void topic.push(body));
      return { reader, topic };
    });
    for (const [i, { here }] of all.entries()) {
      await here.send("q", [message(i)]);
      await here.publish("t", [message(i)]);
    }
    for (const cluster of all) await quiet(cluster);
    for (const [i, { reader, topic }] of heard.entries())
      assert.deepEqual([reader.bodies, topic], [[i], [i]]);
  });

  lifecycleStress(`${name} channels`, async () => ({
    service: open(),
    works: async (channels) => {
      const reader = new Reader();
      const heard: unknown[] = [];
      const consumer = channels.consume("q", reader.handle);
      const subscriber = channels.subscribe("t", ({ body }) => void heard.push(body));
      await channels.send("q", messages(1));
      await channels.publish("t", messages(1));
      await until("the messages", () => reader.deliveries.length === 1 && heard.length === 1);
      await Promise.all([consumer.close(), subscriber.close()]);
    },
  }));
}

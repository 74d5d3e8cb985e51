import { RedisChannels, type RedisChannelsOptions } from "../../../src/channels/redis/channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { RedisServer, type RedisServerOptions } from "../../support/redis-server.ts";
import { openDoors } from "./world.ts";

/** A server, and keepers on it that are stopped whatever happens. */
export class RedisWorld {
  readonly server: RedisServer;
  readonly #opened = new Set<RedisChannels>();

  private constructor(server: RedisServer) {
    this.server = server;
  }

  static async open(options: RedisServerOptions = {}): Promise<RedisWorld> {
    return new RedisWorld(await RedisServer.start(options));
  }

  get url(): string {
    return this.server.url();
  }

  /** Not started yet. */
  channels(options: Partial<RedisChannelsOptions> = {}): RedisChannels {
    const channels = new RedisChannels({
      url: this.url,
      clock: systemClock,
      random: systemRandom,
      ...options,
    });
    this.#opened.add(channels);
    return channels;
  }

  async started(options: Partial<RedisChannelsOptions> = {}): Promise<RedisChannels> {
    const channels = this.channels(options);
    await channels.start();
    return channels;
  }

  command<Reply>(...args: readonly string[]): Promise<Reply> {
    return this.server.command<Reply>(...args);
  }

  /** The names of all keys, without those that go by themselves, and what topics leave behind, which is short and stays. */
  async keys(): Promise<string[]> {
    const keys = await this.command<string[]>("KEYS", "*");
    const left = keys.filter((key) => !/\}:(?:topics|topics:count|consumers:beat)$/.test(key)).sort();
    const timesToLive = await Promise.all(left.map((key) => this.command<number>("PTTL", key)));
    return left.filter((_, i) => timesToLive[i] === -1);
  }

  /** Stops every keeper and empties the server. */
  async clear(): Promise<void> {
    await this.#stopAll();
    await this.command("FLUSHALL");
  }

  async close(): Promise<void> {
    try {
      await this.#stopAll();
    } finally {
      await this.server.stop();
    }
  }

  async #stopAll(): Promise<void> {
    openDoors();
    await Promise.all([...this.#opened].map((channels) => channels.stop()));
    this.#opened.clear();
  }
}

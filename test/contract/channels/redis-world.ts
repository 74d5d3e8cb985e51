import { RedisChannels, type RedisChannelsOptions } from "../../../src/channels/redis/channels.ts";
import { RedisServer, type RedisServerOptions } from "../../support/redis-server.ts";
import { ServedWorld } from "./served-world.ts";

export class RedisWorld extends ServedWorld<RedisChannels, RedisChannelsOptions> {
  readonly server: RedisServer;

  private constructor(server: RedisServer) {
    super(RedisChannels);
    this.server = server;
  }

  static async open(options: RedisServerOptions = {}): Promise<RedisWorld> {
    return new RedisWorld(await RedisServer.start(options));
  }

  get url(): string {
    return this.server.url();
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

  async clear(): Promise<void> {
    await this.stopAll();
    await this.command("FLUSHALL");
  }

  async close(): Promise<void> {
    try {
      await this.stopAll();
    } finally {
      await this.server.stop();
    }
  }
}

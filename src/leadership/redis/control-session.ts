/**
 * A node's own connection for elections, so that leases never wait for messages of the channels.
 *
 * While it is open, the node is subscribed to the channel of its own incarnation. Redis drops the subscription at the
 * moment the connection breaks, so the number of subscribers shows at once that a leader was killed; no key of Redis ends
 * with a connection. Rejected: finding the connection in `CLIENT LIST`, because the server walks through all connections
 * and scripts may not call it; and a socket to the leader's own port, because the leader may listen on none. Where the
 * number of subscribers is not available (a proxy, a user without the permission), leases alone decide.
 */

import type { Clock } from "../../platform/clock.ts";
import { Redis, checkRedis } from "../../platform/drivers/redis/redis.ts";
import type { RedisScript, RedisCommands, SendOptions } from "../../platform/drivers/redis/connection.ts";
import type { RedisSession } from "../../platform/drivers/redis/session.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle, startWith } from "../../platform/service.ts";

export interface ControlOptions extends Pick<Platform, "identity" | "clock" | "random"> {
  readonly url: string;
  readonly prefix?: string;
  readonly commandMs: number;
  /** Takes the place of the clock of Redis: for tests, which move it by hand. */
  readonly time: Clock | null;
  readonly onReady: () => void;
  readonly onLost: () => void;
  /** A notification within our cluster, such as `leader/scheduler`. */
  readonly onNotification: (subject: string) => void;
}

/** First in every script that needs the time: `at`, in ms. Numbers are written with `%d`: Lua would write 1.8e+12. */
export const NOW = `
local at = tonumber(ARGV[1])
if not at then
  local time = redis.call('TIME')
  at = time[1] * 1000 + math.floor(time[2] / 1000)
end
`;

export class ControlSession extends Lifecycle {
  readonly commandMs: number;
  readonly #o: ControlOptions;
  readonly #redis: Redis;
  readonly #session: RedisSession;
  readonly notifications: string;
  readonly #ownChannel: string;
  readonly #serverTime: ServerTime;
  #counted = false;
  #evicts: string | null = null;

  constructor(options: ControlOptions) {
    super();
    this.#o = options;
    this.commandMs = options.commandMs;
    const { identity, clock } = options;
    this.#redis = new Redis({ ...options, name: `baton/${identity.incarnation}/${identity.name}` });
    this.notifications = this.#redis.keys.channel("coordinator", "notifications");
    this.#ownChannel = this.#redis.keys.channel("coordinator", "incarnation", identity.incarnation);
    this.#serverTime = new ServerTime(clock);
    this.#session = this.#redis.session({
      channels: [this.notifications, this.#ownChannel],
      onMessage: (channel, subject) => {
        if (channel === this.notifications) options.onNotification(subject);
      },
      onOpen: async (session) => {
        const sentAt = clock.monotonic();
        const asked = session.send<[string, string]>(["TIME"]);
        this.#counted = await isCounted(session, this.#ownChannel);
        const [seconds, micros] = await asked;
        this.#serverTime.learn(Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000), sentAt);
      },
      onReady: options.onReady,
      onLost: () => {
        this.#serverTime.forget();
        options.onLost();
      },
    });
  }

  get open(): boolean {
    return this.#session.open;
  }

  /** The channel of our incarnation; empty where others cannot see its subscription end. */
  get ownChannel(): string {
    return this.#counted ? this.#ownChannel : "";
  }

  /** The policy by which the server deletes keys when its memory is full; null when it deletes none. */
  get evicts(): string | null {
    return this.#evicts;
  }

  key(...parts: readonly string[]): string {
    return this.#redis.keys.key("coordinator", ...parts);
  }

  /** First argument of every script that needs the time: empty, and Redis looks at its own clock. */
  now(): string {
    const at = this.#o.time?.now();
    return at === undefined ? "" : String(at);
  }

  /** By the clock of Redis: what arrives there later than this is late. Empty while its clock is not known. */
  latestBy(deadlineMs: number): string {
    const at = this.#o.time ? null : this.#serverTime.latest(deadlineMs);
    return at === null ? "" : String(at);
  }

  send<Reply>(args: readonly string[], options?: SendOptions): Promise<Reply> {
    return this.#session.send(args, options);
  }

  /** A script whose answer begins with a number and the server's time. */
  async timed<Reply extends readonly [number, number, ...unknown[]] = [number, number]>(
    script: RedisScript,
    keys: readonly string[],
    args: readonly (string | number)[],
    options?: SendOptions,
  ): Promise<Reply> {
    const sentAt = this.#o.clock.monotonic();
    const reply = await this.#session.run<Reply>(script, keys, [this.now(), ...args], options);
    if (!this.#o.time) this.#serverTime.learn(reply[1], sentAt);
    return reply;
  }

  protected async onStart(): Promise<void> {
    await startWith(this.#session, async () => {
      this.#evicts = (await checkRedis(this.#session, this.#redis.shown)).evicts;
    });
  }

  protected async onStop(): Promise<void> {
    await this.#session.stop();
    this.#serverTime.forget();
  }
}

async function isCounted(session: RedisCommands, channel: string): Promise<boolean> {
  try {
    const [, count] = await session.send<[string, number]>(["PUBSUB", "NUMSUB", channel]);
    return count > 0;
  } catch {
    return false; // not permitted, or not known to whatever is in between
  }
}

/** Answers that took longer say less; they count only while nothing better is known. */
const PROMPT_MS = 100;

/**
 * An upper bound for the current time of the server, by the time that its answers contain:
 *
 *     time of the server now  <=  time in the answer + time since the request was sent
 *
 * holds unless its clock is set. A command carries its deadline in these terms, so that the server refuses what arrives
 * too late: after the server was stalled, or from the buffer of a broken connection.
 */
class ServerTime {
  readonly #clock: Clock;
  /** Server's clock minus our monotonic one, at most. */
  #ahead: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  learn(serverAt: number, sentAtMono: number): void {
    const tookMs = this.#clock.monotonic() - sentAtMono;
    if (this.#ahead === null || tookMs <= PROMPT_MS) this.#ahead = serverAt - sentAtMono;
  }

  /** Another server may be at the other end of the next connection. */
  forget(): void {
    this.#ahead = null;
  }

  latest(inMs: number): number | null {
    return this.#ahead === null ? null : Math.ceil(this.#ahead + this.#clock.monotonic() + inMs);
  }
}

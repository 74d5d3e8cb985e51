/**
 * A connection that is reopened after every loss. Blocking reads and calls that must never wait (leases, heartbeats) have one of their own.
 *
 * - What `onOpen` sets up, and the subscriptions, are in place before any other command of a new connection.
 * - Commands of one turn of the event loop are sent together, without waiting for earlier answers.
 * - No command is queued and none is sent twice: without a connection it is rejected at once, and one whose connection ends is
 *   rejected as `unknown` (see errors.ts). The deadline of a command ends its connection.
 */

import type { RedisArgument } from "@redis/client";
import type { Platform } from "../../platform.ts";
import { ReconnectingSession, type SessionEvents } from "../reconnecting-session.ts";
import type { RedisAddress } from "../server-url.ts";
import { translated, unavailable } from "./errors.ts";
import { RedisConnection, type RedisCommands, type RedisScript, type SendOptions } from "./connection.ts";

export interface RedisSessionOptions extends Pick<Platform, "clock" | "random">, SessionEvents {
  readonly address: RedisAddress;
  /** Shown in `CLIENT LIST`. No spaces. */
  readonly name?: string;
  readonly connectMs?: number;
  readonly commandMs?: number;
  /** Subscribed to on each new connection. */
  readonly channels?: readonly string[];
  readonly onMessage?: (channel: string, message: string) => void;
  /** Until it resolves, the session does not count as open; when it rejects, the connection is given up. */
  readonly onOpen?: (session: RedisCommands) => Promise<void>;
}

const CONNECT_MS = 5_000;
const COMMAND_MS = 5_000;

export class RedisSession extends ReconnectingSession<RedisConnection> implements RedisCommands {
  readonly #o: RedisSessionOptions;

  constructor(options: RedisSessionOptions) {
    super(options);
    this.#o = options;
  }

  send<Reply>(args: readonly RedisArgument[], options?: SendOptions): Promise<Reply> {
    return this.use((connection) => connection.send<Reply>(args, options));
  }

  run<Reply>(
    script: RedisScript,
    keys: readonly string[],
    args: readonly (RedisArgument | number)[],
    options?: SendOptions,
  ): Promise<Reply> {
    return this.use((connection) => connection.run<Reply>(script, keys, args, options));
  }

  protected make(): RedisConnection {
    const { address, clock, connectMs = CONNECT_MS, commandMs = COMMAND_MS, name = "baton" } = this.#o;
    const onEnd = (ended: RedisConnection, reason: unknown): void => this.ended(ended, reason);
    return new RedisConnection({ address, clock, connectMs, commandMs, name, onEnd });
  }

  protected async setUp(connection: RedisConnection): Promise<void> {
    const { channels = [], onMessage = () => {}, onOpen } = this.#o;
    await connection.open();
    if (channels.length > 0) await connection.subscribe(channels, onMessage);
    await onOpen?.(connection);
  }

  protected destroy(connection: RedisConnection, reason: unknown): void {
    connection.end(reason);
  }

  protected farewell(connection: RedisConnection): void {
    connection.end(new Error("the connection was closed"));
  }

  protected translated(error: unknown): unknown {
    return translated(error, "not_done");
  }

  protected unavailable(reason: string): Error {
    return unavailable(reason, "not_done");
  }
}

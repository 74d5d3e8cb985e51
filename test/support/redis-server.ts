/** A real Redis for tests and benchmarks: the system's `redis-server`, or the program in BATON_TEST_REDIS, such as a Valkey server. */

import { createClient } from "@redis/client";
import {
  onFreePort,
  ServerProcess,
  systemProgram,
  type ServerCommand,
  type Started,
} from "./server-process.ts";

export interface RedisServerOptions {
  /** Whether the data is there again after a restart. Without it every restart begins empty. */
  readonly persistent?: boolean;
  readonly password?: string;
  /** More settings, as `["maxmemory", "10mb"]`. */
  readonly settings?: readonly (readonly [name: string, ...values: string[]])[];
}

export class RedisServer extends ServerProcess {
  readonly port: number;
  readonly #password: string | null;

  private constructor(started: Started, port: number, password: string | null) {
    super(started);
    this.port = port;
    this.#password = password;
  }

  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    const program = systemProgram("redis-server", "BATON_TEST_REDIS", "redis-server");
    const { started, port } = await onFreePort((directory, port) =>
      commandOf(program, directory, port, options),
    );
    return new RedisServer(started, port, options.password ?? null);
  }

  url(database = 0): string {
    const user = this.#password === null ? "" : `:${encodeURIComponent(this.#password)}@`;
    return `redis://${user}127.0.0.1:${this.port}/${database}`;
  }

  /** One command on a connection of its own, as an operator would give it. */
  async command<Reply = unknown>(...args: readonly string[]): Promise<Reply> {
    const client = createClient({ url: this.url(), socket: { reconnectStrategy: false } });
    client.on("error", () => {});
    await client.connect();
    try {
      return (await client.sendCommand(args)) as Reply;
    } finally {
      client.destroy();
    }
  }

  /** `kill` is kill -9; `shutdown` lets it save what it is to keep. The data of a persistent one stays. */
  halt(how: "kill" | "shutdown" = "kill"): Promise<void> {
    return this.end(how === "kill" ? "SIGKILL" : "SIGTERM");
  }
}

function commandOf(
  program: string,
  directory: string,
  port: number,
  { persistent = false, password, settings = [] }: RedisServerOptions,
): ServerCommand {
  const all: (readonly string[])[] = [
    ["port", String(port)],
    ["bind", "127.0.0.1"],
    ["dir", directory],
    ["save", ""],
    ["appendonly", persistent ? "yes" : "no"],
    // Every write is on disk before its answer, so that kill -9 loses none.
    ...(persistent ? [["appendfsync", "always"]] : []),
    ...(password === undefined ? [] : [["requirepass", password]]),
    ...settings,
  ];
  const args = all.flatMap(([name, ...values]) => [`--${name}`, ...values]);
  return { program, args, options: { cwd: directory }, ready: /Ready to accept connections/ };
}

/** What nodes ask of their servers: transactions of a PostgreSQL database, and commands that a Redis gets. */

import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";

/** A session of PostgreSQL reports what it did up to ten seconds later, when it has nothing to do. */
const REPORT_MS = 11_000;
const IDLE_MS = 10_000;

/** The counter's own session is in none of the figures, but for two transactions. */
export class PostgresCounter {
  readonly #client: Client;

  private constructor(client: Client) {
    this.#client = client;
  }

  static async open(url: string): Promise<PostgresCounter> {
    const client = new Client({ connectionString: url });
    client.on("error", () => {});
    await client.connect();
    return new PostgresCounter(client);
  }

  async perSecond(ms: number): Promise<number> {
    const before = await this.#transactions();
    await sleep(ms);
    return ((await this.#transactions()) - before) / (ms / 1_000);
  }

  /** Transactions from the start of `work` to its end; those of the wait for all reports are taken off. */
  async during(work: () => Promise<unknown>): Promise<number> {
    const idle = await this.perSecond(IDLE_MS);
    const before = await this.#transactions();
    await work();
    await sleep(REPORT_MS);
    return (await this.#transactions()) - before - idle * (REPORT_MS / 1_000);
  }

  async connections(): Promise<number> {
    const { rows } = await this.#client.query<{ n: number }>(
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    return rows[0]!.n;
  }

  close(): Promise<void> {
    return this.#client.end();
  }

  async #transactions(): Promise<number> {
    const { rows } = await this.#client.query<{ n: number }>(
      "SELECT (xact_commit + xact_rollback)::float8 AS n FROM pg_stat_database WHERE datname = current_database()",
    );
    return rows[0]!.n;
  }
}

/**
 * Commands that clients send. MONITOR tells them from those that their scripts call; INFO commandstats adds both up.
 */
export class RedisCounter {
  readonly #socket: Socket;
  /** Sent by a client; called by a script. */
  sent = 0;
  called = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    createInterface({ input: socket }).on("line", (line) => {
      if (/^\+\d+\.\d+ \[\d+ lua\]/.test(line)) this.called++;
      else if (/^\+\d+\.\d+ \[/.test(line)) this.sent++;
    });
  }

  static async open(port: number): Promise<RedisCounter> {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write("MONITOR\r\n");
    await new Promise((resolve) => socket.once("data", resolve));
    return new RedisCounter(socket);
  }

  close(): void {
    this.#socket.destroy();
  }
}

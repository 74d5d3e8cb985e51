import { PostgresChannels, type PostgresChannelsOptions } from "../../../src/channels/postgres/channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { Postgres } from "../../../src/platform/drivers/postgres/postgres.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { migrate } from "../../../src/store/postgres/schema.ts";
import { PostgresServer, type SharedPostgres } from "../../support/postgres-server.ts";
import { openDoors } from "./world.ts";

/** A server with a database whose tables are there, and keepers on it that are stopped whatever happens. */
export class PostgresWorld {
  readonly server: SharedPostgres;
  readonly url: string;
  readonly #opened = new Set<PostgresChannels>();

  private constructor(server: SharedPostgres, url: string) {
    this.server = server;
    this.url = url;
  }

  static async open(running?: SharedPostgres): Promise<PostgresWorld> {
    const server = running ?? (await PostgresServer.shared());
    try {
      const url = await server.createDatabase();
      await migrated(url);
      return new PostgresWorld(server, url);
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  /** Not started yet. */
  channels(options: Partial<PostgresChannelsOptions> = {}): PostgresChannels {
    const channels = new PostgresChannels({
      url: this.url,
      clock: systemClock,
      random: systemRandom,
      ...options,
    });
    this.#opened.add(channels);
    return channels;
  }

  async started(options: Partial<PostgresChannelsOptions> = {}): Promise<PostgresChannels> {
    const channels = this.channels(options);
    await channels.start();
    return channels;
  }

  async query(sql: string): Promise<Record<string, unknown>[]> {
    return this.server.query(sql, this.url);
  }

  /** Stops every keeper and empties the tables. */
  async clear(): Promise<void> {
    await this.#stopAll();
    await this.query("TRUNCATE baton.message, baton.hint");
  }

  async close(): Promise<void> {
    await this.#stopAll();
    await this.server.stop();
  }

  async #stopAll(): Promise<void> {
    openDoors();
    await Promise.all([...this.#opened].map((channels) => channels.stop()));
    this.#opened.clear();
  }
}

export async function migrated(url: string, schema = "baton"): Promise<void> {
  await using db = new Postgres({ url, schema, clock: systemClock });
  await db.start();
  await migrate(db);
}

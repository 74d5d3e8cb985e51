import { PostgresChannels, type PostgresChannelsOptions } from "../../../src/channels/postgres/channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { Postgres } from "../../../src/platform/drivers/postgres/postgres.ts";
import { migrate } from "../../../src/store/postgres/migrate.ts";
import { PostgresServer, type SharedPostgres } from "../../support/postgres-server.ts";
import { ServedWorld } from "./served-world.ts";

/** With a database whose tables are there. */
export class PostgresWorld extends ServedWorld<PostgresChannels, PostgresChannelsOptions> {
  readonly server: SharedPostgres;
  readonly url: string;

  private constructor(server: SharedPostgres, url: string) {
    super(PostgresChannels);
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

  async query(sql: string): Promise<Record<string, unknown>[]> {
    return this.server.query(sql, this.url);
  }

  async clear(): Promise<void> {
    await this.stopAll();
    await this.query("TRUNCATE baton.message, baton.hint");
  }

  async close(): Promise<void> {
    await this.stopAll();
    await this.server.stop();
  }
}

export async function migrated(url: string, schema = "baton"): Promise<void> {
  await using db = new Postgres({ url, schema, clock: systemClock });
  await db.start();
  await migrate(db, systemClock);
}

/** Coordination on a real PostgreSQL. */

import { PostgresCoordination } from "../../src/leadership/postgres/coordination.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { LockCluster, openClusterLock, type GivenOptions } from "./lock-cluster.ts";
import type { LockWorld } from "./lock-world.ts";
import { PostgresServer, type SharedPostgres } from "./postgres-server.ts";

/** One cluster: a schema of its own in a database, and nodes that are stopped with it. */
export class PostgresCluster extends LockCluster<PostgresCoordination> {
  readonly server: SharedPostgres;
  readonly url: string;
  readonly schema: string;

  private constructor(server: SharedPostgres, url: string, schema: string) {
    super();
    this.server = server;
    this.url = url;
    this.schema = schema;
  }

  static #schemas = 0;
  /** On the shared server one database for all clusters of a process: sessions and locks of other processes are not seen there. */
  static #database: Promise<string> | null = null;
  static readonly #empty = new Map<SharedPostgres, string[]>();

  static async open(server: SharedPostgres): Promise<PostgresCluster> {
    const own = server instanceof PostgresServer;
    const url = own ? server.url("postgres") : await (PostgresCluster.#database ??= server.createDatabase());
    const used = PostgresCluster.#empty.get(server)?.pop();
    if (used !== undefined) return new PostgresCluster(server, url, used);
    const schema = `cluster_${++PostgresCluster.#schemas}`;
    const store = await openPostgresStore({ url, schema, clock: systemClock });
    await store.close();
    return new PostgresCluster(server, url, schema);
  }

  /** A statement on this cluster's tables, as somebody else. */
  sql(text: string): Promise<Record<string, unknown>[]> {
    return this.server.query(text.replaceAll("baton.", `${this.schema}.`), this.url);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    // Emptied for the next who asks: making the tables takes longer than most tests.
    await this.sql("TRUNCATE baton.leader, baton.term, baton.node, baton.author, baton.sample");
    const { server, schema } = this;
    PostgresCluster.#empty.set(server, [...(PostgresCluster.#empty.get(server) ?? []), schema]);
  }
  protected open(given: GivenOptions): PostgresCoordination {
    const { url, schema } = this;
    return new PostgresCoordination({ url, schema, ...given });
  }
}

export async function openPostgresLock(
  server: SharedPostgres,
  rounds: number,
  url?: string,
): Promise<LockWorld> {
  const cluster = await PostgresCluster.open(server);
  return openClusterLock(cluster, { rounds, ...(url === undefined ? {} : { url }) });
}

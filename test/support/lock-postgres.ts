/** Coordination on a real PostgreSQL, for its contracts and for what only it must keep. */

import type { MembershipSettings } from "../../src/coordination/registered-membership.ts";
import { PostgresCoordination } from "../../src/coordination/postgres/postgres.ts";
import type { NodeIdentity, OwnInfo } from "../../src/core/node.ts";
import { systemClock, type Clock } from "../../src/platform/clock.ts";
import type { Log } from "../../src/platform/log.ts";
import { ManualClock } from "../../src/platform/manual-clock.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { PostgresStore } from "../../src/store/postgres/postgres.ts";
import { candidate } from "./lock-candidates.ts";
import { ROLE, type LockWorld } from "./lock-world.ts";
import type { PostgresServer } from "./postgres-server.ts";

export const OWN_INFO: OwnInfo = {
  url: "http://10.0.0.7:4000",
  hostname: "host",
  address: "10.0.0.7",
  httpPort: 4000,
  roles: ["worker"],
  capabilities: ["hello"],
  version: "1.2.3",
  startedAt: 5,
  load: { jobs: 1, connections: 2, cpu: 0.25, memory: 0.75, loopLagMs: 3 },
};

export interface MemberOptions {
  readonly identity?: NodeIdentity;
  readonly settings?: Partial<MembershipSettings>;
  readonly info?: () => OwnInfo;
  readonly log?: Log;
  /** Instead of the database's. */
  readonly time?: Clock;
  /** Through which address the database is reached, if not directly. */
  readonly url?: string;
}

/** One cluster: a schema of its own in a database, and nodes that are stopped with it. */
export class PostgresCluster implements AsyncDisposable {
  readonly server: PostgresServer;
  readonly url: string;
  readonly schema: string;
  readonly #members: PostgresCoordination[] = [];

  private constructor(server: PostgresServer, url: string, schema: string) {
    this.server = server;
    this.url = url;
    this.schema = schema;
  }

  static #schemas = 0;
  static readonly #empty = new Map<PostgresServer, string[]>();

  static async open(server: PostgresServer): Promise<PostgresCluster> {
    const url = server.url("postgres");
    const used = PostgresCluster.#empty.get(server)?.pop();
    if (used !== undefined) return new PostgresCluster(server, url, used);
    const schema = `cluster_${++PostgresCluster.#schemas}`;
    const store = new PostgresStore({ url, schema, clock: systemClock });
    await store.start();
    await store.stop();
    return new PostgresCluster(server, url, schema);
  }

  /** A node that was not started yet. */
  member(name: string, options: MemberOptions = {}): PostgresCoordination {
    const { identity = candidate(name, systemRandom.uuid()), info = () => OWN_INFO, ...rest } = options;
    const { url, schema } = this;
    const given = { url, schema, identity, info, clock: systemClock, random: systemRandom, ...rest };
    const member = new PostgresCoordination(given);
    this.#members.push(member);
    return member;
  }

  async start(name: string, options: MemberOptions = {}): Promise<PostgresCoordination> {
    const member = this.member(name, options);
    await member.start();
    return member;
  }

  /** A statement on this cluster's tables, as somebody else. */
  sql(text: string): Promise<Record<string, unknown>[]> {
    return this.server.query(text.replaceAll("baton.", `${this.schema}.`), this.url);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map((member) => member.stop()));
    // Emptied for the next who asks: making the tables takes longer than most tests.
    await this.sql("TRUNCATE baton.leader, baton.term, baton.node, baton.author, baton.sample");
    const { server, schema } = this;
    PostgresCluster.#empty.set(server, [...(PostgresCluster.#empty.get(server) ?? []), schema]);
  }
}

/** The database's clock is moved by hand, so that a lease of a minute runs out at once. */
export async function openPostgresLock(
  server: PostgresServer,
  rounds: number,
  url?: string,
): Promise<LockWorld> {
  const cluster = await PostgresCluster.open(server);
  const time = new ManualClock();
  let lives = 0;
  const reopen = async () => {
    const member = await cluster.start(`node-${++lives}`, { time, ...(url === undefined ? {} : { url }) });
    return member.lock(ROLE);
  };
  try {
    return {
      lock: await reopen(),
      ttlMs: 60_000,
      rounds,
      elapse: (ms) => time.advance(ms),
      reopen,
      close: () => cluster[Symbol.asyncDispose](),
    };
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * What a store stands on: SQLite in a directory, or a PostgreSQL server that is started for the run. A scenario asks for
 * places and opens Baton or a floor there, and does not know on which of the two.
 */

import { tmpdir } from "node:os";
import { PostgresServer } from "../test/support/postgres-server.ts";
import type { Actions } from "./actions.ts";
import { Actor } from "./actor.ts";
import type { BatonActions } from "./baton.ts";
import { multiplyHistory } from "./postgres-tables.ts";
import type { Side } from "./scenario.ts";
import { diskKind, type Workplace } from "./workplace.ts";

export const ENGINES = ["sqlite", "postgres"] as const;
export type EngineName = (typeof ENGINES)[number];

/** Where one store is; several processes may open it if the engine lets them. */
export interface Place {
  readonly dir: string;
  /** On a server only. */
  readonly url?: string;
  /** Whose processor time is counted beside that of the measured process. */
  readonly serverPid?: number;
}

export interface Engine {
  readonly name: EngineName;
  /** Version and disk, for the head of the report. */
  readonly about: string;
  /** Whether several processes can use one place. */
  readonly shared: boolean;
  place(name: string): Promise<Place>;
  floor(place: Place, options?: Readonly<Record<string, unknown>>): Promise<Side>;
  /** So many finished jobs of Baton's, shaped as the store keeps them. */
  seedHistory(place: Place, count: number): Promise<void>;
  stop(): Promise<void>;
}

export function ours(
  place: Place,
  options: Readonly<Record<string, unknown>> = {},
): Promise<Actor<BatonActions>> {
  return Actor.open<BatonActions>("./baton.ts", { ...place, ...options });
}

/** As many as one call has time for. */
const PILE_PIECE = 100_000;

/** So many jobs that wait, spread over so many queues. */
export async function pile(
  node: Actor<BatonActions>,
  jobs: number,
  how: { readonly queues: number; readonly task?: string },
): Promise<void> {
  for (let left = jobs; left > 0; left -= PILE_PIECE)
    await node.call("pile", { jobs: Math.min(left, PILE_PIECE), ...how });
}

export function openEngine(name: EngineName, workplace: Workplace): Promise<Engine> {
  return name === "sqlite" ? openSqlite(workplace) : openPostgres(workplace);
}

/** The same of jobs that are run. */
const SEED_PIECE = 500_000;

async function openSqlite(workplace: Workplace): Promise<Engine> {
  return {
    name: "sqlite",
    about: `SQLite ${process.versions["sqlite"]} on ${workplace.describe()}`,
    shared: false,
    place: async (label) => ({ dir: workplace.dir(label) }),
    floor: (place, options = {}) => Actor.open<Actions>("./floors/sqlite.ts", { ...place, ...options }),
    // Run for real; and in a process of its own, because one that has run a million jobs has another heap than the one
    // that it is compared with.
    async seedHistory(place, count) {
      const seeder = await ours(place);
      try {
        for (let left = count; left > 0; left -= SEED_PIECE)
          await seeder.call("passThrough", { jobs: Math.min(left, SEED_PIECE), backlog: 20_000, marks: [1] });
      } finally {
        await seeder.stop();
      }
    },
    stop: async () => {},
  };
}

/**
 * As in the harness that measures the peers, so that figures stand beside theirs: fsync on, nothing written twice because
 * of a checkpoint in the middle of a round, and vacuum as often as a busy queue wants it.
 */
const SERVER_SETTINGS = [
  "fsync=on",
  "synchronous_commit=on",
  "full_page_writes=on",
  "shared_buffers=1GB",
  "max_wal_size=8GB",
  "checkpoint_timeout=30min",
  "autovacuum_naptime=10s",
];

async function openPostgres(workplace: Workplace): Promise<Engine> {
  const server = await PostgresServer.start({ durable: true, settings: SERVER_SETTINGS });
  const [row] = await server.query("SHOW server_version");
  return {
    name: "postgres",
    // Not in the checkout: the server's user may not be allowed to go there.
    about: `PostgreSQL ${String(row!["server_version"])} (fsync on) on ${diskKind(tmpdir())}`,
    shared: true,
    // A database each: a notification wakes every listener of its database, whoever it is meant for.
    place: async (label) => ({
      dir: workplace.dir(label),
      url: await server.createDatabase(),
      serverPid: server.pid,
    }),
    floor: (place, options = {}) => Actor.open<Actions>("./floors/postgres.ts", { ...place, ...options }),
    async seedHistory(place, count) {
      const template = await ours(place);
      try {
        await template.call("drain", { jobs: 1_000 });
      } finally {
        await template.stop();
      }
      await multiplyHistory(place.url!, count);
    },
    stop: () => server.stop(),
  };
}

/** The embedded store: one file, or memory; one process; nothing else to install. */

import { join } from "node:path";
import type { Clock } from "../../platform/clock.ts";
import { IN_MEMORY, openingError, SqliteFile } from "../../platform/drivers/sqlite/sqlite-file.ts";
import type { Guarantees, Store } from "../store.ts";
import { SqliteAccess } from "./access.ts";
import { SqliteAgents } from "./agents.ts";
import { sqliteJobs } from "./jobs/jobs.ts";
import { SqliteJournal } from "./journal.ts";
import { StoreCache } from "./jobs/store-cache.ts";
import { SqliteQueues } from "./queues.ts";
import { Read } from "./jobs/read.ts";
import { SqliteSamples } from "./samples.ts";
import { SqliteScheduleNotes } from "./schedule-notes.ts";
import { SqliteSchedules } from "./schedules.ts";
import { migrate } from "./schema.ts";
import { Submit } from "./jobs/submit.ts";
import { SqliteTerms } from "./terms.ts";

const FILE: Guarantees = { name: "sqlite", durability: "power loss", shared: false, keepsTokenFile: true };
const MEMORY: Guarantees = { name: "memory", durability: "nothing", shared: false, keepsTokenFile: false };

export interface SqliteOptions {
  /** Directory of the file; made if it is not there. Null keeps everything in memory until `close`. */
  readonly dir: string | null;
  readonly clock: Clock;
}

export type SqliteStore = Store & Required<Pick<Store, "scheduleNotes">>;

export async function openSqliteStore({ dir, clock }: SqliteOptions): Promise<SqliteStore> {
  return sqliteStore(openCache(dir === null ? IN_MEMORY : join(dir, "baton.db"), clock));
}

export function openCache(path: string, clock: Clock): StoreCache {
  const file = new SqliteFile(path);
  try {
    migrate(file);
    const ledger = new StoreCache(file, clock);
    file.setHooks({ beforeCommit: () => ledger.save(), afterRollback: () => ledger.reload() });
    return ledger;
  } catch (error) {
    file.close();
    throw openingError(file.path, error);
  }
}

export function sqliteStore(ledger: StoreCache): SqliteStore {
  const { file } = ledger;
  const terms = new SqliteTerms(file);
  const read = new Read(ledger);
  const parts = { ledger, terms, submit: new Submit(ledger, read), read };
  const schedules = new SqliteSchedules(parts);
  const close = async (): Promise<void> => file.close();
  return {
    guarantees: file.path === IN_MEMORY ? MEMORY : FILE,
    get problem() {
      return file.problem;
    },
    jobs: sqliteJobs(parts),
    queues: new SqliteQueues(ledger),
    schedules,
    scheduleNotes: new SqliteScheduleNotes({ ...parts, schedules }),
    terms,
    samples: new SqliteSamples(parts),
    agents: new SqliteAgents(parts),
    journal: new SqliteJournal(parts),
    access: new SqliteAccess(parts),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The embedded store: one file, one process, nothing else to install. */

import { join } from "node:path";
import type { Clock } from "../../platform/clock.ts";
import { openingError, SqliteFile } from "../../platform/drivers/sqlite/sqlite-file.ts";
import type { Store } from "../store.ts";
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

export interface SqliteOptions {
  /** Directory of the file; made if it is not there. */
  readonly dir: string;
  readonly clock: Clock;
}

export type SqliteStore = Store & Required<Pick<Store, "scheduleNotes">>;

export async function openSqliteStore({ dir, clock }: SqliteOptions): Promise<SqliteStore> {
  const file = new SqliteFile(join(dir, "baton.db"));
  try {
    migrate(file);
    const ledger = new StoreCache(file, clock);
    file.setHooks({ beforeCommit: () => ledger.save(), afterRollback: () => ledger.reload() });
    const terms = new SqliteTerms(file);
    const read = new Read(ledger);
    const parts = { ledger, terms, submit: new Submit(ledger, read), read };
    const schedules = new SqliteSchedules(parts);
    const close = async (): Promise<void> => file.close();
    return {
      guarantees: { name: "sqlite", durability: "power loss", shared: false, keepsTokenFile: true },
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
  } catch (error) {
    file.close();
    throw openingError(file.path, error);
  }
}

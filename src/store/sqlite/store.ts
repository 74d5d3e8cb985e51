/** The embedded store: one file, or memory; one process; nothing else to install. */

import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { isFinal } from "../../core/jobs/job.ts";
import type { Clock } from "../../platform/clock.ts";
import { IN_MEMORY, openingError, SqliteFile } from "../../platform/drivers/sqlite/sqlite-file.ts";
import type { Guarantees, Store } from "../store.ts";
import { accessStore } from "../access.ts";
import { agentStore } from "../agents.ts";
import { journalStore } from "../journal.ts";
import { purgeScript } from "../purge.ts";
import { sampleStore } from "../samples.ts";
import { fireSchedule, scheduleStore, type ScheduleStore } from "../schedules.ts";
import { termStore } from "../terms.ts";
import { Control } from "./jobs/control.ts";
import { sqliteJobs } from "./jobs/jobs.ts";
import { StoreCache } from "./jobs/store-cache.ts";
import { sqliteQueues } from "./queues.ts";
import { Read } from "./jobs/read.ts";
import { scheduleNotes } from "../schedule-notes.ts";
import { migrate } from "./schema.ts";
import { Submit } from "./jobs/submit.ts";
import { SqliteScripts } from "./scripts.ts";

const FILE: Guarantees = { name: "sqlite", durability: "power loss", shared: false, keepsTokenFile: true };
const MEMORY: Guarantees = { name: "memory", durability: "nothing", shared: false, keepsTokenFile: false };

export interface SqliteOptions {
  /** Directory of the file; created if it does not exist. Null keeps everything in memory until `close`. */
  readonly dir: string | null;
  readonly clock: Clock;
}

export type SqliteStore = Store & Required<Pick<Store, "scheduleNotes">>;

export async function openSqliteStore({ dir, clock }: SqliteOptions): Promise<SqliteStore> {
  return openSqliteFile(dir === null ? IN_MEMORY : join(dir, "baton.db"), clock);
}

export function openSqliteFile(path: string, clock: Clock): SqliteStore {
  return sqliteStore(openCache(path, clock));
}

/** `db`: used instead of the file at `path`. */
export function openCache(path: string, clock: Clock, db?: DatabaseSync): StoreCache {
  const file = new SqliteFile(path, clock, db);
  try {
    migrate(file);
    const cache = new StoreCache(file, clock);
    file.setHooks({ beforeCommit: () => cache.save(), afterRollback: () => cache.reload() });
    return cache;
  } catch (error) {
    file.close();
    throw openingError(file.path, error);
  }
}

export function sqliteStore(cache: StoreCache): SqliteStore {
  const { file } = cache;
  const scripts = new SqliteScripts(cache);
  const read = new Read(cache);
  const control = new Control(cache);
  const parts = { cache, scripts, submit: new Submit(cache, read), read, control };
  const close = async (): Promise<void> => file.close();
  return {
    guarantees: file.path === IN_MEMORY ? MEMORY : FILE,
    get problem() {
      return file.problem;
    },
    jobs: sqliteJobs(parts),
    queues: sqliteQueues(cache),
    schedules: scheduleStore(scripts, fire(parts)),
    scheduleNotes: scheduleNotes(scripts, {
      pause: (queue, paused) => cache.setPaused(queue, paused),
      submit: (job, author, schedule) => parts.submit.run([job], author, { schedule })[0]!,
    }),
    terms: termStore(scripts),
    samples: sampleStore(scripts),
    agents: agentStore(scripts),
    journal: journalStore(scripts),
    access: accessStore(scripts),
    purge: (what, fence) =>
      scripts.transaction(
        () =>
          what.of === "jobs" ? control.purge(what.retention, what.limit) : scripts.run(purgeScript(what)),
        fence,
      ),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The script of schedules.ts, with the jobs of this store. */
function fire(parts: { scripts: SqliteScripts; submit: Submit; read: Read }): ScheduleStore["fire"] {
  const { scripts, submit, read } = parts;
  return (firing, author, fence) =>
    scripts.write(
      () =>
        fireSchedule(firing, fence, {
          isUnfinished: (job) => {
            const found = read.get(job);
            return found !== null && !isFinal(found.status);
          },
          submit: (jobs) =>
            submit.run(jobs, { ...author, leaderEpoch: fence.epoch }, { schedule: firing.schedule }),
        }),
      fence,
    );
}

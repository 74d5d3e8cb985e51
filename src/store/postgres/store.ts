/** The shared store: one database, any number of nodes. */

import type { Clock } from "../../platform/clock.ts";
import { Postgres, type PostgresOptions, write } from "../../platform/drivers/postgres/postgres.ts";
import { poolerCheck } from "../../platform/drivers/postgres/pooler-check.ts";
import type { Store } from "../store.ts";
import { accessStore } from "../access.ts";
import { agentStore } from "../agents.ts";
import { journalStore } from "../journal.ts";
import { purgeScript } from "../purge.ts";
import { sampleStore } from "../samples.ts";
import { fireSchedule, scheduleStore, type ScheduleStore } from "../schedules.ts";
import { termStore } from "../terms.ts";
import { postgresJobs } from "./jobs/jobs.ts";
import { jobPurge } from "./jobs/purge.ts";
import { covering } from "./jobs/ranges.ts";
import { StoreCache, uuidOf } from "./jobs/store-cache.ts";
import { acceptRuns } from "./ownership/accept.ts";
import { assignments } from "./ownership/assignments.ts";
import { dispatches } from "./ownership/dispatch.ts";
import { ownedWrites } from "./ownership/owned-writes.ts";
import { postgresQueues } from "./queues.ts";
import { PostgresScripts } from "./scripts.ts";
import { deadRows } from "./dead-rows.ts";
import { migrate } from "./migrate.ts";
import { notedTasks, noteTasks } from "./note-tasks.ts";
import { Report } from "./jobs/report.ts";
import { Settle } from "./jobs/settle.ts";
import { Slots } from "./jobs/slots.ts";
import { Submit } from "./jobs/submit.ts";

export interface PostgresStoreOptions extends PostgresOptions {
  /** Replaces the clock of the database, for tests. */
  readonly time?: Clock;
}

export type PostgresStore = Store & Required<Pick<Store, "ownership">>;

const UNFINISHED = write(
  "schedule-unfinished",
  `SELECT FROM baton.job j CROSS JOIN LATERAL (${covering("live", "j.seq")}) AS l WHERE j.id = $1`,
);

/** Shorter than the time that a lease leaves after one failed renewal. */
const RENEWAL_CONNECT_MS = 2_000;

export async function openPostgresStore(given: PostgresStoreOptions): Promise<PostgresStore> {
  const options = { pooler: poolerCheck(given), ...given };
  const db = new Postgres(options);
  // A separate pool: a lease must not expire because the other one is full of hanging statements.
  const renewals = new Postgres({ ...options, connections: 1, connectMs: RENEWAL_CONNECT_MS });
  const cache = new StoreCache(db, options.time ?? null);
  await db.start();
  try {
    await migrate(db, options.clock);
    await cache.learnAllKinds();
    await renewals.start();
  } catch (error) {
    await db.stop();
    throw error;
  }
  const scripts = new PostgresScripts(cache);
  const purgeJobs = jobPurge(cache, scripts);
  const settle = new Settle(cache, scripts);
  const report = new Report(cache, settle, scripts);
  const slots = new Slots(cache, options.clock);
  const parts = {
    cache,
    scripts,
    slots,
    submit: new Submit(cache, scripts, slots),
    settle,
    report,
    renewals,
  };
  const close = async (): Promise<void> => void (await Promise.all([db.stop(), renewals.stop()]));
  return {
    guarantees: { name: "postgres", durability: "power loss", shared: true, keepsTokenFile: false },
    // A database that is unavailable comes back: no failure makes the store unusable for good.
    problem: null,
    jobs: postgresJobs(parts),
    queues: postgresQueues(cache),
    schedules: scheduleStore(scripts, fire(parts)),
    terms: termStore(scripts),
    samples: sampleStore(scripts),
    agents: agentStore(scripts),
    journal: journalStore(scripts),
    access: accessStore(scripts),
    ownership: {
      ...dispatches(cache, scripts, options.clock),
      accept: acceptRuns(cache, settle),
      ...assignments(cache, scripts),
      record: ownedWrites(cache, settle, report),
    },
    noteTasks: (tasks) => noteTasks(db, tasks),
    notedTasks: () => notedTasks(db),
    purge: (what, fence) =>
      what.of === "jobs"
        ? purgeJobs(what.retention, what.limit, fence)
        : scripts.write(() => purgeScript(what), fence),
    deadRows: () => deadRows(cache),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The script of schedules.ts, with the jobs of this store. */
function fire(parts: { cache: StoreCache; scripts: PostgresScripts; submit: Submit }): ScheduleStore["fire"] {
  const { cache, scripts, submit } = parts;
  return async (firing, author, fence) => {
    await submit.learnNames(firing.occurrences.flatMap(({ job }) => job ?? []));
    const by = await cache.authorId({ ...author, leaderEpoch: fence.epoch });
    return scripts.write(
      (tx) =>
        fireSchedule(firing, fence, {
          isUnfinished: async (job) => (await tx.query(UNFINISHED, [uuidOf(job)])).length > 0,
          submit: (jobs) => submit.within(tx, jobs, { author: by, schedule: firing.schedule }),
        }),
      fence,
    );
  };
}

/** Fires schedules in PostgreSQL: the script of schedules.ts, with the jobs of this store. */

import { write } from "../../platform/drivers/postgres/postgres.ts";
import { fireSchedule, type ScheduleStore } from "../schedules.ts";
import { type StoreCache, uuidOf } from "./jobs/store-cache.ts";
import { covering } from "./jobs/ranges.ts";
import type { Submit } from "./jobs/submit.ts";
import type { PostgresScripts } from "./scripts.ts";

const UNFINISHED = write(
  "schedule-unfinished",
  `SELECT FROM baton.job j CROSS JOIN LATERAL (${covering("live", "j.seq")}) AS l WHERE j.id = $1`,
);

export function fire(parts: {
  cache: StoreCache;
  scripts: PostgresScripts;
  submit: Submit;
}): ScheduleStore["fire"] {
  const { cache, scripts, submit } = parts;
  return async (firing, author, fence) => {
    await submit.learnNames(firing.occurrences.flatMap(({ job }) => job ?? []));
    const by = await cache.authorId({ ...author, leaderEpoch: fence.epoch });
    return scripts.write(
      (tx) =>
        fireSchedule(firing, fence, {
          isUnfinished: async (job) => (await tx.query(UNFINISHED, [uuidOf(job)])).length > 0,
          submit: (jobs) => submit.within(tx, jobs, by, firing.schedule),
        }),
      fence,
    );
  };
}

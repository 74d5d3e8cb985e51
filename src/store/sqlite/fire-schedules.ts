/** Fires schedules in SQLite: the script of schedules.ts, with the jobs of this store. */

import { isFinal } from "../../core/jobs/job.ts";
import { fireSchedule, type ScheduleStore } from "../schedules.ts";
import type { Read } from "./jobs/read.ts";
import type { Submit } from "./jobs/submit.ts";
import type { SqliteScripts } from "./scripts.ts";

export function fire(parts: { scripts: SqliteScripts; submit: Submit; read: Read }): ScheduleStore["fire"] {
  const { scripts, submit, read } = parts;
  return (firing, author, fence) =>
    scripts.write(
      () =>
        fireSchedule(firing, fence, {
          isUnfinished: (job) => {
            const found = read.get(job);
            return found !== null && !isFinal(found.status);
          },
          submit: (jobs) => submit.run(jobs, { ...author, leaderEpoch: fence.epoch }, firing.schedule),
        }),
      fence,
    );
}

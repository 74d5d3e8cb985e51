/**
 * Changes of jobs at this node outside the controller API, for followers of a job and for readers of events. While no
 * node has a reader of events, each costs one check of a flag.
 */

import type { JobId } from "../../core/ids.ts";
import { isFinal, type JobStatus } from "../../core/jobs/job.ts";
import type { Followers } from "../../jobs/follow/followers.ts";
import type { Platform } from "../../platform/platform.ts";
import type { ClaimedJob, NewJob, Submitted } from "../../store/store.ts";
import type { EventFeed } from "./event-feed.ts";
import type { EventName } from "./event-log.ts";

export type JobEventEmitter = ReturnType<typeof jobEventEmitter>;

export function jobEventEmitter(
  { identity }: Pick<Platform, "identity">,
  feed: EventFeed,
  followers: Pick<Followers, "changed">,
) {
  return {
    submitted(
      jobs: readonly Pick<NewJob, "task" | "queue">[],
      answers: readonly Pick<Submitted, "id" | "status">[],
    ): void {
      if (!feed.wanted) return;
      answers.forEach(({ id, status }, at) => {
        const { task, queue } = jobs[at]!;
        feed.emit("job.submitted", { job_id: id, task, queue, status });
      });
    },

    /** Null: only its logs or its progress. */
    changed(id: JobId, status: JobStatus | null, job?: ClaimedJob): void {
      followers.changed(id);
      if (!feed.wanted) return;
      const { jobEpoch: job_epoch, task, queue } = job ?? {};
      const run = job && { job_epoch, task, queue, worker: identity.name };
      feed.emit(nameOf(status), { job_id: id, ...(status !== null && { status }), ...run });
    },
  };
}

function nameOf(status: JobStatus | null): EventName {
  if (status === "processing") return "job.started";
  return status !== null && isFinal(status) ? `job.${status}` : "job.updated";
}

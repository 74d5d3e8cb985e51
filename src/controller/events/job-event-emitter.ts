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

export interface JobEventEmitterOptions {
  readonly feed: EventFeed;
  readonly followers: Pick<Followers, "changed">;
}

export class JobEventEmitter {
  readonly #platform: Pick<Platform, "identity">;
  readonly #o: JobEventEmitterOptions;

  constructor(platform: Pick<Platform, "identity">, options: JobEventEmitterOptions) {
    this.#platform = platform;
    this.#o = options;
  }

  submitted(
    jobs: readonly Pick<NewJob, "task" | "queue">[],
    answers: readonly Pick<Submitted, "id" | "status">[],
  ): void {
    const { feed } = this.#o;
    if (!feed.wanted) return;
    answers.forEach(({ id, status }, at) => {
      const { task, queue } = jobs[at]!;
      feed.emit("job.submitted", { job_id: id, task, queue, status });
    });
  }

  /** By a schedule. */
  fired({ id, task, queue }: Pick<NewJob, "id" | "task" | "queue">): void {
    const { feed } = this.#o;
    if (feed.wanted) feed.emit("job.submitted", { job_id: id, task, queue, status: "queued" });
  }

  /** Null: only its logs or its progress. */
  changed(id: JobId, status: JobStatus | null, job?: ClaimedJob): void {
    const { feed, followers } = this.#o;
    followers.changed(id);
    if (!feed.wanted) return;
    const data = {
      job_id: id,
      ...(status !== null && { status }),
      ...(job && {
        job_epoch: job.jobEpoch,
        task: job.task,
        queue: job.queue,
        worker: this.#platform.identity.name,
      }),
    };
    feed.emit(nameOf(status), data);
  }
}

function nameOf(status: JobStatus | null): EventName {
  if (status === "processing") return "job.started";
  return status !== null && isFinal(status) ? `job.${status}` : "job.updated";
}

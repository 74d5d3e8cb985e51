/**
 * What happens to jobs at this node, apart from the controller API, for those who follow a job and those who read events. While events
 * are not read at any node, each costs one look at a flag.
 */

import type { JobId } from "../core/ids.ts";
import { isFinal, type JobStatus } from "../core/job.ts";
import type { Followers } from "../jobs/followers.ts";
import type { ClaimedJob, NewJob, Submitted } from "../store/store.ts";
import type { EventFeed } from "./event-feed.ts";
import type { EventName } from "./event-log.ts";
import type { RunBook } from "./run-book.ts";

export interface JobNewsOptions {
  readonly node: string;
  readonly feed: EventFeed;
  readonly followers: Pick<Followers, "changed">;
  /** What agents run. */
  readonly book: RunBook;
}

export class JobNews {
  readonly #o: JobNewsOptions;

  constructor(options: JobNewsOptions) {
    this.#o = options;
  }

  submitted(jobs: readonly NewJob[], answers: readonly Submitted[]): void {
    const { feed } = this.#o;
    if (!feed.wanted) return;
    answers.forEach(({ id, status, existed }, at) => {
      const { task, queue } = jobs[at]!;
      if (!existed) feed.emit("job.submitted", { job_id: id, task, queue, status });
    });
  }

  /** By a schedule. */
  fired({ id, task, queue }: NewJob): void {
    const { feed } = this.#o;
    if (feed.wanted) feed.emit("job.submitted", { job_id: id, task, queue, status: "queued" });
  }

  /** Null: only its logs or its progress. */
  changed(id: JobId, status: JobStatus | null, job?: ClaimedJob): void {
    const { feed, followers, node } = this.#o;
    followers.changed(id);
    if (!feed.wanted) return;
    const data = {
      job_id: id,
      ...(status !== null && { status }),
      ...(job && { job_epoch: job.jobEpoch, task: job.task, queue: job.queue, worker: node }),
    };
    feed.emit(nameOf(status), data);
  }

  /** The job was taken from a worker or agent that let its lease run out. */
  recovered(id: JobId, status: JobStatus): void {
    const { feed, book } = this.#o;
    const run = book.end(id);
    feed.emit("lease.expired", {
      job_id: id,
      ...(run && { agent: run.agent, lease_id: run.job.lease, job_epoch: run.job.jobEpoch }),
    });
    this.changed(id, status);
  }
}

function nameOf(status: JobStatus | null): EventName {
  if (status === "processing") return "job.started";
  return status !== null && isFinal(status) ? `job.${status}` : "job.updated";
}

/** The events of a node, and what tells them what happens to jobs. */

import type { Channels } from "./channels/channels.ts";
import { EventFeed } from "./controller/event-feed.ts";
import type { EventName } from "./controller/event-log.ts";
import { channelEventWire, type EventWire } from "./controller/event-wire.ts";
import type { Leadership } from "./coordination/coordination.ts";
import type { JobId } from "./core/ids.ts";
import { isFinal, type JobStatus } from "./core/job.ts";
import type { NodeIdentity } from "./core/node.ts";
import { roleOf } from "./core/role.ts";
import type { Followers } from "./jobs/followers.ts";
import type { Clock } from "./platform/clock.ts";
import type { ClaimedJob, NewJob, Submitted } from "./store/store.ts";

export interface EventPartsOptions {
  readonly identity: NodeIdentity;
  readonly channels: Channels;
  readonly followers: Pick<Followers, "changed">;
  /** Where nodes are peers. */
  readonly peerWire: EventWire | null;
  readonly clock: Clock;
  readonly draining: () => boolean;
  /** Built later. */
  readonly leadership: () => Leadership;
}

export function openEvents(options: EventPartsOptions): {
  readonly feed: EventFeed;
  readonly news: JobNews;
} {
  const { identity, channels, peerWire, clock, draining, leadership } = options;
  const shared = channels.shared ? channelEventWire(channels) : null;
  const feed = new EventFeed({
    node: identity.name,
    life: identity.incarnation,
    wire: peerWire ?? shared,
    leads: () => leadership().held()?.epoch ?? null,
    standing: () => ({
      role: roleOf(leadership().held(), draining()),
      epoch: leadership().current()?.epoch ?? null,
      leader: leadership().current()?.leader ?? null,
    }),
    clock,
  });
  return { feed, news: new JobNews(feed, options) };
}

/**
 * What happens to jobs at this node, apart from the controller API, for those who follow a job and those who read events. While nobody
 * reads these, each event costs one look at a flag.
 */
export class JobNews {
  readonly #feed: EventFeed;
  readonly #followers: Pick<Followers, "changed">;
  readonly #node: string;

  constructor(feed: EventFeed, { followers, identity }: Pick<EventPartsOptions, "followers" | "identity">) {
    this.#feed = feed;
    this.#followers = followers;
    this.#node = identity.name;
  }

  submitted(jobs: readonly NewJob[], answers: readonly Submitted[]): void {
    if (!this.#feed.wanted) return;
    answers.forEach(({ id, status, existed }, at) => {
      const { task, queue } = jobs[at]!;
      if (!existed) this.#feed.emit("job.submitted", { job_id: id, task, queue, status });
    });
  }

  /** By a schedule. */
  fired({ id, task, queue }: NewJob): void {
    if (this.#feed.wanted) this.#feed.emit("job.submitted", { job_id: id, task, queue, status: "queued" });
  }

  /** Null: only its logs or its progress. */
  changed(id: JobId, status: JobStatus | null, job?: ClaimedJob): void {
    this.#followers.changed(id);
    if (!this.#feed.wanted) return;
    const data = {
      job_id: id,
      ...(status !== null && { status }),
      ...(job && { job_epoch: job.jobEpoch, task: job.task, queue: job.queue, worker: this.#node }),
    };
    this.#feed.emit(nameOf(status), data);
  }
}

function nameOf(status: JobStatus | null): EventName {
  if (status === "processing") return "job.started";
  return status !== null && isFinal(status) ? `job.${status}` : "job.updated";
}

/**
 * Sends dispatched jobs to the workers and offers their assignments to the nodes, at the same time. If either is lost, the store brings it
 * back: jobs that no worker accepts are dispatched again, and assignments without an owner are offered again.
 */

import type { Channels, Message } from "../../channels/channels.ts";
import type { Assignment, Dispatch, Dispatching } from "../../channels/messages.ts";
import { queues, topics } from "../../channels/channel-names.ts";
import { messageSize, routeOf, type WorkerGroup } from "../../core/push/dispatch.ts";
import { split } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import type { DispatchedAssignment, DispatchedJob } from "../../store/ownership.ts";

/** How long a dispatch queue is named after its last use. Shorter, and workers come and go from queues with little to do. */
export const USED_MS = 600_000;

export class DispatchPublisher {
  readonly #platform: Platform;
  readonly #channels: Pick<Channels, "send" | "publish">;
  readonly #leaderEpoch: number;
  readonly #used = new Map<string, number>();
  #sending: Promise<void> = Promise.resolve();

  constructor(platform: Platform, channels: Pick<Channels, "send" | "publish">, leaderEpoch: number) {
    this.#platform = platform;
    this.#channels = channels;
    this.#leaderEpoch = leaderEpoch;
  }

  /** The dispatch queues that were used in this term, lately. */
  get channels(): string[] {
    return [...this.#used.keys()];
  }

  /** Answers how many jobs are on their way, by dispatch queue, when the portion before has been sent: the next is marked meanwhile. */
  async publish(
    assignments: readonly DispatchedAssignment[],
    group: WorkerGroup,
    groups: readonly WorkerGroup[],
  ): Promise<ReadonlyMap<string, number>> {
    const { messages, counts } = this.#pack(assignments, group, groups);
    await this.#sending;
    const fresh = [...counts.keys()].filter((channel) => !this.#used.has(channel));
    if (fresh.length > 0) this.announce(fresh);
    for (const channel of counts.keys()) this.#used.set(channel, this.#platform.clock.monotonic());
    this.#sending = this.#send(assignments, messages);
    return counts;
  }

  /** A worker that hears of no leader that dispatches claims from the store. */
  announceUsed(): void {
    const since = this.#platform.clock.monotonic() - USED_MS;
    for (const [channel, at] of this.#used) if (at < since) this.#used.delete(channel);
    this.announce(this.channels);
  }

  /** Workers that are ready for all queues cannot know otherwise which there are. */
  announce(channels: readonly string[], asks = false): void {
    const body: Dispatching = { channels, ...(asks && { asks }) };
    void this.#channels.publish(topics.dispatching, [{ key: "", body }]).catch((err: unknown) => {
      this.#platform.log.warn({ err, channels }, "workers could not be informed of new dispatch queues");
    });
  }

  idle(): Promise<void> {
    return this.#sending;
  }

  #pack(
    assignments: readonly DispatchedAssignment[],
    group: WorkerGroup,
    groups: readonly WorkerGroup[],
  ): { messages: Map<string, Message[]>; counts: Map<string, number> } {
    const leaderEpoch = this.#leaderEpoch;
    const total = assignments.reduce((sum, { jobs }) => sum + jobs.length, 0);
    const size = messageSize(group, total);
    const channelOf = channelsFor(groups);
    const messages = new Map<string, Message[]>();
    const counts = new Map<string, number>();
    for (const { id, jobs } of assignments) {
      for (const [channel, theirs] of Map.groupBy(jobs, channelOf)) {
        const sent = messages.get(channel) ?? [];
        messages.set(channel, sent);
        counts.set(channel, (counts.get(channel) ?? 0) + theirs.length);
        for (const part of split(theirs, size)) {
          const body: Dispatch = { assignment: id, leaderEpoch, jobs: part };
          // Each under a key of its own: who has one message in hand holds up no other.
          sent.push({ key: part[0]!.id, body });
        }
      }
    }
    return { messages, counts };
  }

  async #send(
    assignments: readonly DispatchedAssignment[],
    messages: ReadonlyMap<string, readonly Message[]>,
  ): Promise<void> {
    const { clock, log } = this.#platform;
    const leaderEpoch = this.#leaderEpoch;
    const at = new Date(clock.now()).toISOString();
    const offers = assignments.map(({ id, jobs }): Message => {
      const body: Assignment = { assignment: id, ownerEpoch: 0, jobs: jobs.length, leaderEpoch, at };
      return { key: String(id), body };
    });
    const sent = [...messages].map(([channel, theirs]) => this.#channels.send(channel, theirs));
    sent.push(this.#channels.send(queues.assigned, offers));
    for (const outcome of await Promise.allSettled(sent)) {
      if (outcome.status === "fulfilled") continue;
      log.warn(
        { err: outcome.reason as unknown },
        "jobs could not be dispatched; they are marked anew when their marks have timed out",
      );
    }
  }
}

/** Where a job goes. Asked for each job, so that what was found for a queue and task is remembered. */
function channelsFor(groups: readonly WorkerGroup[]): (job: DispatchedJob) => string {
  const found = new Map<string, string>();
  return ({ queue, task }) => {
    const key = queues.dispatch(queue, task);
    let channel = found.get(key);
    if (channel === undefined) {
      const route = routeOf(queue, task, groups);
      found.set(key, (channel = queues.dispatch(queue, route.task ?? undefined)));
    }
    return channel;
  };
}

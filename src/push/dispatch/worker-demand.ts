/** What a leader knows about the demand of the workers, and what it has sent them. Created for each term, with nothing older. */

import type { WorkerHeartbeat } from "../../channels/messages.ts";
import { dispatchRoute, queues } from "../../channels/channel-names.ts";
import { groupWorkers, type Demand, type Outstanding, type WorkerGroup } from "../../core/push/dispatch.ts";
import { acceptsWork } from "../../core/node.ts";

interface Known extends Demand {
  readonly heardAt: number;
  readonly taken: Readonly<Record<string, number>>;
  readonly suspectsTaken: number;
}

export class WorkerDemand {
  readonly #workers = new Map<string, Known>();
  /** By dispatch queue: marked and not accepted, as far as was heard. */
  readonly #outstanding = new Map<string, Outstanding>();
  #suspects = 0;

  get outstanding(): Outstanding[] {
    return [...this.#outstanding.values()];
  }

  get suspects(): number {
    return this.#suspects;
  }

  /** Whether this worker was not known. What it had taken before is not in our count, so only later ones are taken off. */
  heard(heartbeat: WorkerHeartbeat, now: number): boolean {
    const { incarnation, taken, suspects } = heartbeat;
    const before = this.#workers.get(incarnation);
    if (before) this.#takeOff(before, heartbeat);
    if (!acceptsWork(heartbeat)) {
      this.#workers.delete(incarnation);
      return false;
    }
    const scope = scopeOf(heartbeat);
    this.#workers.set(incarnation, {
      ...(before?.scope === scope ? before : { ...scopeSets(heartbeat), scope }),
      wants: heartbeat.wants,
      runningMax: heartbeat.runningMax,
      suspects: suspects?.wanted ? 1 : 0,
      heardAt: now,
      taken,
      suspectsTaken: suspects?.taken ?? 0,
    });
    return before === undefined;
  }

  forget(silentSince: number, isGone: (incarnation: string) => boolean): void {
    for (const [incarnation, { heardAt }] of this.#workers) {
      if (heardAt < silentSince || isGone(incarnation)) this.#workers.delete(incarnation);
    }
  }

  groups(): WorkerGroup[] {
    return groupWorkers(this.#workers.values());
  }

  sent(channel: string, jobs: number): void {
    const route = dispatchRoute(channel)!;
    this.#outstanding.set(channel, { ...route, jobs: (this.#outstanding.get(channel)?.jobs ?? 0) + jobs });
  }

  sentSuspect(): void {
    this.#suspects++;
  }

  /**
   * The store knows the number for each queue, and is right. Heartbeats on their way, of which it knew before us, are then taken off twice:
   * a little more is sent than is wanted until the next count.
   */
  recount(byQueue: ReadonlyMap<string, number>): void {
    this.#suspects = 0;
    const counted = new Map<string, number>();
    for (const { queue, jobs } of this.#outstanding.values())
      counted.set(queue, (counted.get(queue) ?? 0) + jobs);
    for (const [channel, { queue, task, jobs }] of this.#outstanding) {
      const share = Math.min(1, (byQueue.get(queue) ?? 0) / counted.get(queue)!);
      const left = Math.round(jobs * share);
      if (left > 0) this.#outstanding.set(channel, { queue, task, jobs: left });
      else this.#outstanding.delete(channel);
    }
    for (const [queue, jobs] of byQueue) {
      const unknown = jobs - (counted.get(queue) ?? 0);
      if (unknown > 0) this.sent(queues.dispatch(queue), unknown);
    }
  }

  #takeOff(before: Known, { taken, suspects }: WorkerHeartbeat): void {
    for (const [channel, count] of Object.entries(taken)) {
      const more = count - (before.taken[channel] ?? 0);
      const known = this.#outstanding.get(channel);
      if (!known || more <= 0) continue;
      if (more < known.jobs) this.#outstanding.set(channel, { ...known, jobs: known.jobs - more });
      else this.#outstanding.delete(channel);
    }
    this.#suspects = Math.max(0, this.#suspects - ((suspects?.taken ?? 0) - before.suspectsTaken));
  }
}

function scopeOf({ queues: worked, exceptQueues, tasks }: WorkerHeartbeat): string {
  return JSON.stringify([worked, exceptQueues, tasks]);
}

function scopeSets({ queues: worked, exceptQueues, tasks }: WorkerHeartbeat) {
  return {
    queues: worked && new Set(worked),
    exceptQueues: new Set(exceptQueues),
    tasks: new Set(tasks),
  };
}

/** A store, a clock that moves when told, the service and as many leaders as a test wants. */

import { it } from "node:test";
import type { Channels, Message } from "../../../../src/channels/channels.ts";
import { MemoryChannels } from "../../../../src/channels/memory/channels.ts";
import { type ScheduleRequest, scheduleService } from "../../../../src/jobs/schedules/schedule-service.ts";
import { type JobId, jobId, type NodeName } from "../../../../src/core/ids.ts";
import type { Job } from "../../../../src/core/jobs/job.ts";
import type { Schedule } from "../../../../src/core/schedules/schedule.ts";
import type { Term } from "../../../../src/core/leadership/term.ts";
import { scheduleDuty } from "../../../../src/jobs/schedules/schedule-duty.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { claimRequest } from "../../../support/job-builders.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { recordingLog } from "../../../support/node-log.ts";
import { seededRandom } from "../../../support/seeded-random.ts";
import { memoryStore } from "../../../support/memory-store.ts";
import type { ScheduleStore } from "../../../../src/store/store.ts";
import { settleRuns } from "../../../support/store-world.ts";

export const START = Date.UTC(2026, 0, 1);
export const NODE = "node-a" as NodeName;
export const secondMs = 1_000;
export const minuteMs = 60_000;

const AUTHOR = { node: NODE, ownerEpoch: 1, leaderEpoch: 0 };

export class ScheduleWorld {
  readonly log = recordingLog();
  readonly random = seededRandom(7);
  readonly platform = fakePlatform({ clock: new ManualClock(START), random: this.random, log: this.log });
  readonly clock = this.platform.clock;
  readonly #store = memoryStore({ clock: this.clock });
  readonly #channels = new MemoryChannels({ clock: this.clock });
  readonly store = this.#store.schedules;
  readonly submitted: object[] = [];
  readonly published: { topic: string; message: Message }[] = [];
  /** What stands between the leader and the store; a test may put something in the way. */
  fire: ScheduleStore["fire"] = (...call) => this.store.fire(...call);
  lists = 0;
  list: ScheduleStore["list"] = () => {
    this.lists++;
    return this.store.list();
  };
  /** Hints are delivered unless a test loses them. */
  hintsArrive = true;
  /** Subscriptions that have not been closed. */
  subscriptions = 0;
  readonly #leaders: Leader[] = [];

  readonly channels: Pick<Channels, "publish" | "subscribe"> = {
    publish: async (topic, messages) => {
      for (const message of messages) this.published.push({ topic, message });
      if (this.hintsArrive) await this.#channels.publish(topic, messages);
    },
    subscribe: (topic, handler) => {
      const subscription = this.#channels.subscribe(topic, handler);
      this.subscriptions++;
      return {
        close: async () => {
          this.subscriptions--;
          await subscription.close();
        },
      };
    },
  };

  readonly service = scheduleService(this.platform, {
    store: this.#store,
    channels: this.channels,
    maxAttempts: 5,
    submit: async (requests) => {
      this.submitted.push(...requests);
      return requests.map(() => ({ id: this.newId(), status: "queued" as const, existed: false }));
    },
  });

  /** Runs a test and ends its leaders, also when it fails. */
  static async with(body: (world: ScheduleWorld) => Promise<void>): Promise<void> {
    const world = new ScheduleWorld();
    await world.#channels.start();
    try {
      await body(world);
    } finally {
      const stopped = Promise.all(world.#leaders.map((leader) => leader.stop()));
      // For a fire that takes its time.
      await world.clock.advance(minuteMs);
      await stopped;
      await world.#channels.stop();
      await world.#store.close();
    }
  }

  newId(): JobId {
    return jobId(NODE, this.random.timedUuid());
  }

  async lead(): Promise<Leader> {
    const term = await this.#store.terms.grant("scheduler", { name: NODE, incarnation: "1" });
    const leader = new Leader(this, term);
    this.#leaders.push(leader);
    await this.clock.advance(0);
    return leader;
  }

  put(fields: Partial<ScheduleRequest> = {}): Promise<{ schedule: Schedule; outcome: string }> {
    const timing = fields.cron === undefined && fields.everyMs === undefined ? { everyMs: minuteMs } : {};
    return this.service.put({ name: "tick", task: "work", ...timing, ...fields });
  }

  /** Seconds after the start for which jobs were made, in the order in which they were. */
  async fired(name = "tick"): Promise<number[]> {
    const jobs = (await this.jobs()).filter((job) => job.schedule === name);
    return jobs.map((job) => (job.runAt - START) / secondMs);
  }

  /** In the order in which they were made. */
  async jobs(): Promise<Job[]> {
    return [...(await this.#store.jobs.list({ limit: 100_000 })).jobs].reverse();
  }

  /** Oldest first: `60 fire`, `120 skip overlap`. */
  async history(name = "tick"): Promise<string[]> {
    const noted = await this.store.history(name, 1_000);
    return noted
      .map(({ at, do: what, reason }) => `${(at - START) / secondMs} ${what}${reason ? ` ${reason}` : ""}`)
      .reverse();
  }

  async nextAt(name = "tick"): Promise<number | null> {
    const nextAt = (await this.store.get(name))!.nextAt;
    return nextAt === null ? null : (nextAt - START) / secondMs;
  }

  async finishJobs(): Promise<void> {
    const { jobs } = await this.#store.jobs.claim(claimRequest({ limit: 1_000 }));
    const outcome = { kind: "completed" as const, result: "null" };
    await settleRuns(
      this.#store,
      jobs.map((run) => ({ run, outcome })),
    );
  }
}

export function inWorld(name: string, body: (world: ScheduleWorld) => Promise<void>): void {
  void it(name, () => ScheduleWorld.with(body));
}

export class Leader {
  readonly term: Term;
  readonly done: Promise<void>;
  over = false;
  readonly #ending = new AbortController();

  constructor(world: ScheduleWorld, term: Term) {
    this.term = term;
    const duty = scheduleDuty(world.platform, {
      store: {
        schedules: {
          list: () => world.list(),
          get: (name) => world.store.get(name),
          fire: (...call) => world.fire(...call),
        },
      },
      channels: world.channels,
      author: () => AUTHOR,
    });
    this.done = duty(term, this.#ending.signal).finally(() => (this.over = true));
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.done;
  }
}

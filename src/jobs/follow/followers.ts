/**
 * Follows jobs, here and on other nodes. A node announces the jobs that it follows (`job.followed`, repeated), and the others publish
 * changes (`job.changed`) of those alone: a million jobs without followers cost no messages. All messages are hints to read the store.
 */

import type { Channels, Subscription } from "../../channels/channels.ts";
import type { JobChange } from "../../channels/messages.ts";
import { topics } from "../../channels/channel-names.ts";
import type { JobId } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";
import { Loop, Pause } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle } from "../../platform/service.ts";

const REMIND_MS = 5_000;
/** Two reminders may be lost. */
const FORGET_MS = 3 * REMIND_MS;
/** The net under the hints: a change made elsewhere is seen after this long at the latest. */
const READ_AGAIN_MS = 1_000;

export class Followers extends Lifecycle {
  readonly #clock: Clock;
  readonly #channels: Channels;
  readonly #watchers: JobWatchers;
  /** Jobs that are followed elsewhere, and until when that is believed. */
  readonly #followed = new Map<JobId, number>();
  /** Jobs that are followed here. However many follow one, the other nodes are reminded of it once. */
  readonly #reminders = new Map<JobId, Loop>();
  #subscriptions: Subscription[] = [];

  constructor({ clock }: Pick<Platform, "clock">, channels: Channels) {
    super();
    this.#clock = clock;
    this.#channels = channels;
    this.#watchers = new JobWatchers(clock);
  }

  changed(id: JobId): void {
    this.#watchers.changed(id);
    if (this.#followed.size === 0) return;
    const until = this.#followed.get(id);
    if (until === undefined) return;
    if (this.#clock.monotonic() > until) this.#followed.delete(id);
    else {
      const change: JobChange = { id, status: null };
      void this.#channels.publish(topics.jobChanged, [{ key: id, body: change }]).catch(() => {});
    }
  }

  async *changes(id: JobId, signal: AbortSignal): AsyncGenerator<void> {
    if (!this.#reminders.has(id)) this.#remind(id);
    try {
      yield* this.#watchers.changes(id, signal);
    } finally {
      if (!this.#watchers.has(id)) {
        void this.#reminders.get(id)?.stop();
        this.#reminders.delete(id);
      }
    }
  }

  protected onStart(): void {
    this.#subscriptions = [
      this.#channels.subscribe(topics.jobFollowed, ({ body }) => {
        const { id } = body as { id: JobId };
        this.#forgetOld();
        this.#followed.delete(id); // the map stays in the order of time
        this.#followed.set(id, this.#clock.monotonic() + FORGET_MS);
      }),
      this.#channels.subscribe(topics.jobChanged, ({ body }) =>
        this.#watchers.changed((body as JobChange).id),
      ),
    ];
  }

  protected async onStop(): Promise<void> {
    for (const reminder of this.#reminders.values()) void reminder.stop();
    this.#reminders.clear();
    this.#followed.clear();
    await Promise.all(this.#subscriptions.map((subscription) => subscription.close()));
  }

  #remind(id: JobId): void {
    const reminder = new Loop(this.#clock, async () => {
      await this.#channels.publish(topics.jobFollowed, [{ key: id, body: { id } }]).catch(() => {});
      // Changes before the other nodes knew of the followers were not published.
      this.#watchers.changed(id);
      return REMIND_MS;
    });
    this.#reminders.set(id, reminder);
    if (this.running) reminder.start();
  }

  #forgetOld(): void {
    const now = this.#clock.monotonic();
    for (const [id, until] of this.#followed) {
      if (now <= until) break;
      this.#followed.delete(id);
    }
  }
}

/** The followers of jobs in this process. Costs nothing for jobs without followers. */
export class JobWatchers {
  readonly #clock: Clock;
  readonly #byJob = new Map<JobId, Set<Pause>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#byJob.size;
  }

  has(id: JobId): boolean {
    return this.#byJob.has(id);
  }

  changed(id: JobId): void {
    if (this.#byJob.size === 0) return;
    for (const pause of this.#byJob.get(id) ?? []) pause.wake();
  }

  /** Yields at once, then whenever the job may have changed and now and then regardless. */
  async *changes(id: JobId, signal: AbortSignal): AsyncGenerator<void> {
    const pause = new Pause(this.#clock);
    const watchers = this.#byJob.get(id) ?? new Set();
    this.#byJob.set(id, watchers.add(pause));
    try {
      while (!signal.aborted) {
        pause.clear();
        yield;
        await pause.sleep(READ_AGAIN_MS, signal);
      }
    } finally {
      watchers.delete(pause);
      if (watchers.size === 0 && this.#byJob.get(id) === watchers) this.#byJob.delete(id);
    }
  }
}

/**
 * Follows jobs that run on other nodes. A follower announces itself to all nodes (`job.followed`, repeated while it
 * lasts). A node publishes changes (`job.changed`) only of jobs that are followed, so that a million jobs without
 * followers cost no messages.
 *
 * All messages are hints to read the store: a lost message costs a second, not a change.
 */

import type { Channels, Subscription } from "../../channels/channels.ts";
import type { JobChange } from "../../channels/messages.ts";
import { topics } from "../../channels/channel-names.ts";
import type { JobId } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { JobWatchers } from "./job-watchers.ts";

export interface FollowersOptions {
  readonly channels: Channels;
  readonly watchers: JobWatchers;
  readonly clock: Clock;
}

const REMIND_MS = 5_000;
/** Two reminders may be lost. */
const FORGET_MS = 3 * REMIND_MS;

export class Followers extends Lifecycle {
  readonly #o: FollowersOptions;
  /** Jobs that somebody follows elsewhere, and until when that is believed. */
  readonly #followed = new Map<JobId, number>();
  #subscriptions: Subscription[] = [];
  #stopping = new AbortController();

  constructor(options: FollowersOptions) {
    super();
    this.#o = options;
  }

  /** A job changed here: our own followers look at once, others are told. */
  changed(id: JobId): void {
    const { watchers, channels, clock } = this.#o;
    watchers.changed(id);
    if (this.#followed.size === 0) return;
    const until = this.#followed.get(id);
    if (until === undefined) return;
    if (clock.monotonic() > until) this.#followed.delete(id);
    else {
      const change: JobChange = { id, status: null };
      void channels.publish(topics.jobChanged, [{ key: id, body: change }]).catch(() => {});
    }
  }

  async *changes(id: JobId, signal: AbortSignal): AsyncGenerator<void> {
    const over = new AbortController();
    const end = (): void => over.abort();
    signal.addEventListener("abort", end, { once: true });
    void this.#remind(id, AbortSignal.any([over.signal, this.#stopping.signal]));
    try {
      yield* this.#o.watchers.changes(id, signal);
    } finally {
      signal.removeEventListener("abort", end);
      end();
    }
  }

  protected onStart(): void {
    this.#stopping = new AbortController();
    const { channels, watchers, clock } = this.#o;
    this.#subscriptions = [
      channels.subscribe(topics.jobFollowed, ({ body }) => {
        const { id } = body as { id: JobId };
        this.#forgetOld();
        this.#followed.delete(id); // the map stays in the order of time
        this.#followed.set(id, clock.monotonic() + FORGET_MS);
      }),
      channels.subscribe(topics.jobChanged, ({ body }) => watchers.changed((body as JobChange).id)),
    ];
  }

  protected async onStop(): Promise<void> {
    this.#stopping.abort();
    this.#followed.clear();
    await Promise.all(this.#subscriptions.map((subscription) => subscription.close()));
  }

  async #remind(id: JobId, signal: AbortSignal): Promise<void> {
    const { channels, watchers, clock } = this.#o;
    while (!signal.aborted) {
      await channels.publish(topics.jobFollowed, [{ key: id, body: { id } }]).catch(() => {});
      // What happened before the others heard of us was not told.
      watchers.changed(id);
      await clock.sleep(REMIND_MS, signal);
    }
  }

  #forgetOld(): void {
    const now = this.#o.clock.monotonic();
    for (const [id, until] of this.#followed) {
      if (now <= until) break;
      this.#followed.delete(id);
    }
  }
}

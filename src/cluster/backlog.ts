/**
 * How much waits, for metrics, health and autoscalers: read from the store when somebody asks, kept for a few seconds, and never waited for
 * longer than the asker can. A store that is slow or away costs them an old answer, and they are told how old.
 */

import type { Clock } from "../platform/clock.ts";
import type { Agent } from "../store/agents.ts";
import type { QueueInfo, Store } from "../store/store.ts";

export interface BacklogOptions {
  /** Of a store that is not open yet. */
  readonly store: { queues(): Store["queues"]; agents(): Store["agents"] };
  readonly clock: Clock;
  /** How long an answer counts as new. */
  readonly freshMs?: number;
}

export interface QueueBacklog extends QueueInfo {
  /** Wall time of the store: since when the longest wait lasts; null when nothing waits. */
  readonly oldestAt: number | null;
}

export interface Backlog {
  readonly queues: readonly QueueBacklog[];
  readonly agents: readonly Agent[];
  /** How old this is. */
  readonly ageMs: number;
}

const FRESH_MS = 5_000;
/** Of its time the store spends at most this part on being looked at: a count of a million takes a database a fifth of a second. */
const SHARE_MAX = 1 / 20;

export class BacklogReader {
  readonly #o: BacklogOptions;
  #known: Omit<Backlog, "ageMs"> | null = null;
  #readAt = -Infinity;
  #freshUntil = -Infinity;
  #reading: Promise<void> | null = null;
  #failures = 0;

  constructor(options: BacklogOptions) {
    this.#o = options;
  }

  /** Reads that the store did not answer. */
  get failures(): number {
    return this.#failures;
  }

  /** As it was known last, which may be never. */
  known(): Backlog | null {
    return this.#known && { ...this.#known, ageMs: this.#o.clock.monotonic() - this.#readAt };
  }

  /** No older than a few seconds, unless the store needs longer than `withinMs`. Never rejects. */
  async read(withinMs: number): Promise<Backlog | null> {
    const { clock } = this.#o;
    if (clock.monotonic() < this.#freshUntil) return this.known();
    this.#reading ??= this.#look().finally(() => (this.#reading = null));
    const over = new AbortController();
    await Promise.race([this.#reading, clock.sleep(withinMs, over.signal)]);
    over.abort();
    return this.known();
  }

  async #look(): Promise<void> {
    const { store, clock, freshMs = FRESH_MS } = this.#o;
    const startedAt = clock.monotonic();
    try {
      const [queues, oldest, agents] = await Promise.all([
        store.queues().list(),
        store.queues().waitingSince(),
        store.agents().list(false),
      ]);
      this.#known = {
        queues: queues.map((queue) => ({ ...queue, oldestAt: oldest.get(queue.name) ?? null })),
        agents,
      };
      this.#readAt = clock.monotonic();
      this.#freshUntil = this.#readAt + Math.max(freshMs, (this.#readAt - startedAt) / SHARE_MAX);
    } catch {
      this.#failures++;
    }
  }
}

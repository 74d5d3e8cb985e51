/**
 * The backlog, for people, metrics, health and autoscalers: read from the store on request, and cached for as long as
 * the caller accepts. If the store is slow or unavailable, callers get an old answer together with its age.
 */

import type { Platform } from "../platform/platform.ts";
import type { Agent } from "../store/agents.ts";
import type { DeadRows, QueueInfo, Store } from "../store/store.ts";
import { Cached } from "../platform/cached.ts";

export interface Backlog {
  readonly queues: readonly QueueInfo[];
  readonly agents: readonly Agent[];
  /** Null where the store has none. */
  readonly deadRows: DeadRows | null;
  /** How old this is. */
  readonly ageMs: number;
}

/** For those who only watch. */
const FRESH_MS = 5_000;

export class BacklogReader {
  readonly #counted: Cached<Omit<Backlog, "ageMs">>;

  constructor({ clock }: Pick<Platform, "clock">, store: Pick<Store, "queues" | "agents" | "deadRows">) {
    this.#counted = new Cached(clock, FRESH_MS, async () => {
      const [queues, agents, deadRows] = await Promise.all([
        store.queues.list(),
        store.agents.list(false),
        store.deadRows?.() ?? null,
      ]);
      return { queues, agents, deadRows };
    });
  }

  /** Reads that the store did not answer. */
  get failures(): number {
    return this.#counted.failures;
  }

  /** What is wrong with the store, if anything. */
  get trouble(): string | null {
    return this.#counted.trouble;
  }

  /** What the last read took. */
  get tookMs(): number {
    return this.#counted.tookMs;
  }

  /** As it was known last, which may be never. */
  known(): Backlog | null {
    const { value, ageMs } = this.#counted;
    return value && { ...value, ageMs };
  }

  /** No older than a few seconds, unless the store needs longer than `withinMs`, or so much to count that it must rest. Never rejects. */
  async read(withinMs: number, freshMs?: number): Promise<Backlog | null> {
    await this.#counted.get(withinMs, freshMs);
    return this.known();
  }
}

/**
 * The backlog, for people, metrics, health and autoscalers: read from the store on request. If the store is slow or
 * unavailable, callers get an old answer, and see its age.
 */

import { Cached } from "../platform/cached.ts";
import type { Platform } from "../platform/platform.ts";
import type { Agent } from "../store/agents.ts";
import type { DeadRows, QueueInfo, Store } from "../store/store.ts";

export interface Backlog {
  readonly queues: readonly QueueInfo[];
  readonly agents: readonly Agent[];
  /** Null where the store has none. */
  readonly deadRows: DeadRows | null;
}

/** For those who only watch. */
const FRESH_MS = 5_000;

export function backlogOf(
  { clock }: Pick<Platform, "clock">,
  store: Pick<Store, "queues" | "agents" | "deadRows">,
): Cached<Backlog> {
  return new Cached(clock, FRESH_MS, async () => {
    const [queues, agents, deadRows] = await Promise.all([
      store.queues.list(),
      store.agents.list(false),
      store.deadRows?.() ?? null,
    ]);
    return { queues, agents, deadRows };
  });
}

/**
 * Agents in the store: workers that lease jobs over HTTP. Only the leader writes, under its term; each change records
 * the epoch of that term.
 *
 *   unknown --heartbeat, lease--> alive --remove--> removed (a tombstone) --heartbeat--> alive
 *
 * The store does not decide whether an agent is alive: readers derive that from `lastSeenAt`.
 */

import type { Term } from "../core/leadership/term.ts";

export interface AgentStore {
  /** Creates or refreshes; one that was removed is back. */
  seen(agents: readonly AgentSeen[], fence: Term): Promise<void>;
  /** Leaves a tombstone. False when there is none of that name, or it is removed already. */
  remove(name: string, fence: Term): Promise<boolean>;
  /** By name; those that were removed only when asked for. */
  list(withRemoved: boolean): Promise<readonly Agent[]>;
  /** Forgets those that have not been seen, and tombstones that have stood, for so long. */
  purge(ageMs: number, fence: Term): Promise<number>;
}

export interface AgentSeen {
  readonly name: string;
  /** The tasks that it can run. */
  readonly capabilities: readonly string[];
  /** Of its software; null if it does not tell. */
  readonly version: string | null;
  /** A plain JSON object of its own making, as text. */
  readonly labels: string;
  /** Jobs that it runs now, as it says. */
  readonly running: number;
}

export interface Agent extends AgentSeen {
  /** Wall clock of the store. */
  readonly firstSeenAt: number;
  readonly lastSeenAt: number;
  readonly removedAt: number | null;
  readonly leaderEpoch: number;
}

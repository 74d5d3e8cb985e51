/**
 * The part of the store port that remembers agents: workers that lease over HTTP. Only the leader writes, under its term; a change
 * records the epoch that it was made under.
 *
 *   unknown --heartbeat, lease--> alive --remove--> removed (a tombstone) --heartbeat--> alive
 *
 * Whether an agent that is not removed is alive is a matter of `lastSeenAt` and whoever reads it.
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

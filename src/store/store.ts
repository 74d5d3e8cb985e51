/**
 * The store: jobs, leases, schedules, queues, terms and what else must outlive a process, one interface for each subject.
 *
 * What a backend promises:
 * - A write has been made durable when its promise resolves. A promise that rejects with STORE_UNAVAILABLE leaves
 *   the outcome unknown on a remote store; a second try with the same ids or keys is then harmless.
 * - Every call takes a batch and applies it in one transaction, all of it or nothing.
 * - Leader writes carry a `Term` and are refused with STALE_EPOCH unless it is the newest term of its role, compared
 *   in the transaction of the write. Writes that any node may make take one too (`fence`), for the controller API, where only
 *   the leader writes; the epoch of that term is then the one that is recorded. Writes about a run carry its `jobEpoch` and
 *   answer "stale" in the same way.
 * - One clock decides: the backend's own (for a database, the database's). Callers pass durations, not instants.
 *
 * `openStore` (open-store.ts) returns an open store. Its subjects are the same objects until and after `close`, and refuse with STOPPED
 * from then on.
 */

import type { NodeName } from "../core/ids.ts";
import type { Term } from "../core/leadership/term.ts";
import type { AccessStore } from "./access.ts";
import type { AgentStore } from "./agents.ts";
import type { JobStore } from "./jobs.ts";
import type { JournalStore } from "./journal.ts";
import type { OwnershipStore } from "./ownership.ts";
import type { Purge } from "./purge.ts";
import type { QueueStore } from "./queues.ts";
import type { SampleStore } from "./samples.ts";
import type { ScheduleNotes } from "./schedule-notes.ts";
import type { ScheduleStore } from "./schedules.ts";
import type { TermStore } from "./terms.ts";

export * from "./jobs.ts";
export type { QueueInfo, QueueStore } from "./queues.ts";
export type { Firing, FireVerdict, NotedOccurrence, ScheduleStore } from "./schedules.ts";
export type { TermStore } from "./terms.ts";

export interface Store extends AsyncDisposable {
  readonly guarantees: Guarantees;
  /** Why no write will succeed before the store is opened anew; null while all is well. */
  readonly problem: string | null;
  readonly jobs: JobStore;
  readonly queues: QueueStore;
  readonly schedules: ScheduleStore;
  /** For a cluster of such stores. Left out by a backend that the nodes share. */
  readonly scheduleNotes?: ScheduleNotes;
  readonly terms: TermStore;
  readonly samples: SampleStore;
  readonly agents: AgentStore;
  readonly journal: JournalStore;
  readonly access: AccessStore;
  /** For push dispatch. Left out by a backend that only one process can open. */
  readonly ownership?: OwnershipStore;
  /** A leader's removal of what is too old; answers how many. */
  readonly purge: (what: Purge, fence: Term) => Promise<number>;
  /** Waits for what is under way. Closing twice is harmless. */
  close(): Promise<void>;
}

/** What the backend in use gives. Code above the store asks for these values and never for the name, which is only shown. */
export interface Guarantees {
  readonly name: string;
  /** What an acknowledged job survives. */
  readonly durability: "nothing" | "process crash" | "power loss";
  /** Whether several nodes may use it at the same time. */
  readonly shared: boolean;
  /** Whether the first admin token may be written to a file next to the data: they are on one disk, with the same owner. */
  readonly keepsTokenFile: boolean;
}

/** Under which numbers a write is made. Every stored change records them. */
export interface Author {
  readonly node: NodeName;
  readonly ownerEpoch: number;
  readonly leaderEpoch: number;
}

/**
 * The store: jobs, leases, schedules, queues, terms and all other data that must survive a process, one interface for
 * each subject.
 *
 * What a backend guarantees:
 * - A write is durable when its promise resolves. If it rejects with STORE_UNAVAILABLE, the outcome is unknown on a remote
 *   store; a second try with the same ids or keys is harmless.
 * - A call that takes a batch applies it in one transaction, all of it or nothing.
 * - Leader writes carry a `Term` and are refused with STALE_EPOCH unless it is the newest term of its role, compared
 *   in the transaction of the write. Writes that any node may make accept one too (`fence`), for the controller API, where
 *   only the leader writes; the epoch of that term is then recorded. Writes about a run carry its `jobEpoch`, and
 *   an old one is answered "stale".
 * - Only one clock counts: that of the backend (for a database, the database's). Callers pass durations, not instants.
 *
 * `openStore` (open-store.ts) returns an open store. Its subjects are the same objects before and after `close`; after it
 * they reject with STOPPED.
 */

import type { NodeName } from "../core/ids.ts";
import type { Job } from "../core/jobs/job.ts";
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
  /** Why no write can succeed until the store is opened again; null if it works. */
  readonly problem: string | null;
  readonly jobs: JobStore;
  readonly queues: QueueStore;
  readonly schedules: ScheduleStore;
  /** For clusters without a shared store; left out by a shared one. */
  readonly scheduleNotes?: ScheduleNotes;
  readonly terms: TermStore;
  readonly samples: SampleStore;
  readonly agents: AgentStore;
  readonly journal: JournalStore;
  readonly access: AccessStore;
  /** For push dispatch. Left out by a backend that only one process can open. */
  readonly ownership?: OwnershipStore;
  /**
   * Notes the options of tasks for callers that know no task, in SQL; of the node that started last. Left out by a store
   * to which callers cannot connect.
   */
  readonly noteTasks?: (tasks: readonly NotedTask[]) => Promise<void>;
  /** The names of all tasks that were noted. */
  readonly notedTasks?: () => Promise<readonly string[]>;
  /** Returns how many rows were removed. */
  readonly purge: (what: Purge, fence: Term) => Promise<number>;
  /** Left out by a backend that removes old versions of rows at once. */
  readonly deadRows?: () => Promise<DeadRows>;
  /** Waits for calls in progress. Closing twice is harmless. */
  close(): Promise<void>;
}

export type NotedTask = Pick<Job, "task" | "queue" | "priority" | "maxAttempts" | "timeoutMs">;

/** Code above the store uses these values and never the name, which is only shown. */
export interface Guarantees {
  readonly name: string;
  /** What an acknowledged job survives. */
  readonly durability: "nothing" | "process crash" | "power loss";
  /** Several nodes may use it at the same time. */
  readonly shared: boolean;
  /** The first admin token may be written to a file next to the data, on the same disk with the same owner. */
  readonly keepsTokenFile: boolean;
}

/** Old versions of rows that still take space. */
export interface DeadRows {
  readonly tables: readonly {
    readonly name: string;
    readonly live: number;
    readonly dead: number;
    readonly bytes: number;
  }[];
  /** The transaction that has prevented the removal of dead rows for the longest time. */
  readonly oldestSnapshot: {
    readonly holder: string;
    /** The statement that ends it. */
    readonly remedy: string;
    readonly ageMs: number;
  } | null;
}

/** Recorded with every change. */
export interface Author {
  readonly node: NodeName;
  readonly ownerEpoch: number;
  readonly leaderEpoch: number;
}

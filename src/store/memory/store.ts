/**
 * The store without a disk: for tests, the simulation, and nodes whose jobs need not be durable. It fulfils all
 * guarantees of the store except durability: its data ends with the process. The same calls under the same clock always
 * give the same answers.
 */

import { BatonError } from "../../core/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Guarantees, JobStore, QueueStore, ScheduleStore, Store, TermStore } from "../store.ts";
import type { AccessStore } from "../access.ts";
import type { AgentStore } from "../agents.ts";
import type { JournalStore } from "../journal.ts";
import type { OwnershipStore } from "../ownership.ts";
import type { SampleStore } from "../samples.ts";
import type { ScheduleNotes } from "../schedule-notes.ts";
import { MemoryAccess } from "./access.ts";
import { MemoryAgents } from "./agents.ts";
import { MemoryJobs } from "./jobs/jobs.ts";
import { MemoryJournal } from "./journal.ts";
import { Leases } from "./jobs/leases.ts";
import { StoreCache } from "./jobs/store-cache.ts";
import { MemoryOwnership } from "./ownership/ownership.ts";
import { MemoryQueues } from "./queues.ts";
import { RunWrites } from "./jobs/run-writes.ts";
import { MemorySamples } from "./samples.ts";
import { MemoryScheduleNotes } from "./schedule-notes.ts";
import { MemorySchedules } from "./schedules.ts";
import { MemoryTerms } from "./terms.ts";
import type { Turn } from "./turn.ts";

export interface MemoryStoreOptions {
  readonly clock: Clock;
}

export class MemoryStore implements Store {
  readonly guarantees: Guarantees = {
    name: "memory",
    durability: "nothing",
    shared: false,
    keepsTokenFile: false,
  };
  readonly problem = null;
  readonly jobs: JobStore;
  readonly queues: QueueStore;
  readonly schedules: ScheduleStore;
  readonly scheduleNotes: ScheduleNotes;
  readonly terms: TermStore;
  readonly samples: SampleStore;
  readonly agents: AgentStore;
  readonly journal: JournalStore;
  readonly access: AccessStore;
  /** For the nodes of one process, which use the same object. */
  readonly ownership: OwnershipStore;

  #closed = false;

  constructor({ clock }: MemoryStoreOptions) {
    const ledger = new StoreCache();
    // Async, so that whatever a step throws becomes a rejection; the step itself runs at once, within the call.
    const turn: Turn = async (step) => {
      if (this.#closed) throw new BatonError("STOPPED", "the store is closed");
      const now = clock.now();
      ledger.promote(now);
      return step(now);
    };
    const terms = new MemoryTerms({ turn });
    const leases = new Leases(clock);
    const runs = new RunWrites({ ledger, leases });
    this.jobs = new MemoryJobs({ ledger, leases, runs, terms, turn });
    this.ownership = new MemoryOwnership({ ledger, leases, runs, terms, turn });
    this.queues = new MemoryQueues({ ledger, turn });
    const schedules = new MemorySchedules({ ledger, terms, turn });
    this.schedules = schedules;
    this.scheduleNotes = new MemoryScheduleNotes({ ledger, terms, schedules, turn });
    this.terms = terms;
    this.samples = new MemorySamples({ terms, turn });
    this.agents = new MemoryAgents({ terms, turn });
    this.journal = new MemoryJournal({ terms, turn });
    this.access = new MemoryAccess({ turn });
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  /** What was stored stays while the object does: a node may stop and start again. */
  reopen(): this {
    this.#closed = false;
    return this;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

import { join } from "node:path";
import { BatonError } from "../../core/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import { openingError, SqliteFile } from "../../platform/drivers/sqlite.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { Guarantees, JobStore, QueueStore, ScheduleStore, Store, TermStore } from "../store.ts";
import type { AccessStore } from "../access.ts";
import type { AgentStore } from "../agents.ts";
import type { JournalStore } from "../journal.ts";
import type { SampleStore } from "../samples.ts";
import type { ScheduleNotes } from "../schedule-notes.ts";
import { SqliteAccess } from "./access.ts";
import { SqliteAgents } from "./agents.ts";
import { SqliteJobs } from "./jobs.ts";
import { SqliteJournal } from "./journal.ts";
import { Ledger } from "./ledger.ts";
import { SqliteQueues } from "./queues.ts";
import { Read } from "./read.ts";
import { SqliteSamples } from "./samples.ts";
import { SqliteScheduleNotes } from "./schedule-notes.ts";
import { SqliteSchedules } from "./schedules.ts";
import { migrate } from "./schema.ts";
import { Submit } from "./submit.ts";
import { SqliteTerms } from "./terms.ts";

export interface SqliteOptions {
  /** Where the file lies; made if it is not there. */
  readonly dir: string;
  readonly clock: Clock;
}

interface Parts {
  readonly file: SqliteFile;
  readonly jobs: JobStore;
  readonly queues: QueueStore;
  readonly schedules: ScheduleStore;
  readonly scheduleNotes: ScheduleNotes;
  readonly terms: TermStore;
  readonly samples: SampleStore;
  readonly agents: AgentStore;
  readonly journal: JournalStore;
  readonly access: AccessStore;
}

/** The embedded store: one file, one process, nothing else to install. */
export class SqliteStore extends Lifecycle implements Store {
  readonly guarantees: Guarantees = { name: "sqlite", durability: "power loss", shared: false };
  readonly #options: SqliteOptions;
  #parts: Parts | null = null;

  constructor(options: SqliteOptions) {
    super();
    this.#options = options;
  }

  get problem(): string | null {
    return this.#parts?.file.problem ?? null;
  }

  get jobs(): JobStore {
    return this.#open().jobs;
  }

  get queues(): QueueStore {
    return this.#open().queues;
  }

  get schedules(): ScheduleStore {
    return this.#open().schedules;
  }

  get scheduleNotes(): ScheduleNotes {
    return this.#open().scheduleNotes;
  }

  get terms(): TermStore {
    return this.#open().terms;
  }

  get samples(): SampleStore {
    return this.#open().samples;
  }

  get agents(): AgentStore {
    return this.#open().agents;
  }

  get journal(): JournalStore {
    return this.#open().journal;
  }

  get access(): AccessStore {
    return this.#open().access;
  }

  protected onStart(): void {
    const file = new SqliteFile(join(this.#options.dir, "baton.db"));
    try {
      migrate(file);
      const ledger = new Ledger(file, this.#options.clock);
      file.setHooks({ beforeCommit: () => ledger.save(), afterRollback: () => ledger.reload() });
      const terms = new SqliteTerms(file);
      const read = new Read(ledger);
      const submit = new Submit(ledger, read);
      const parts = { ledger, terms, submit, read };
      const schedules = new SqliteSchedules(parts);
      this.#parts = {
        file,
        terms,
        jobs: new SqliteJobs(parts),
        queues: new SqliteQueues(ledger),
        schedules,
        scheduleNotes: new SqliteScheduleNotes({ ...parts, schedules }),
        samples: new SqliteSamples(parts),
        agents: new SqliteAgents(parts),
        journal: new SqliteJournal(parts),
        access: new SqliteAccess(parts),
      };
    } catch (error) {
      file.close();
      throw openingError(file.path, error);
    }
  }

  protected onStop(): void {
    this.#parts?.file.close();
  }

  #open(): Parts {
    if (!this.#parts) throw new BatonError("STOPPED", "the store has not been started");
    return this.#parts;
  }
}

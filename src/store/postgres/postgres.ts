import { BatonError } from "../../core/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import { Postgres, type PostgresOptions } from "../../platform/drivers/postgres.ts";
import { PoolerCheck } from "../../platform/drivers/postgres-pooler.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { Guarantees, JobStore, QueueStore, ScheduleStore, Store, TermStore } from "../store.ts";
import type { AccessStore } from "../access.ts";
import type { AgentStore } from "../agents.ts";
import type { JournalStore } from "../journal.ts";
import type { OwnershipStore } from "../ownership.ts";
import type { SampleStore } from "../samples.ts";
import { PostgresAccess } from "./access.ts";
import { PostgresAgents } from "./agents.ts";
import { PostgresJobs } from "./jobs.ts";
import { PostgresJournal } from "./journal.ts";
import { Ledger } from "./ledger.ts";
import { PostgresOwnership } from "./ownership.ts";
import { PostgresQueues } from "./queues.ts";
import { PostgresSamples } from "./samples.ts";
import { PostgresSchedules } from "./schedules.ts";
import { migrate } from "./schema.ts";
import { Submit } from "./submit.ts";
import { PostgresTerms } from "./terms.ts";

export interface PostgresStoreOptions extends PostgresOptions {
  /** Takes the place of the database's clock: for tests, which move it by hand. */
  readonly time?: Clock;
}

/** Less than a lease leaves after one renewal that failed. */
const RENEWAL_CONNECT_MS = 2_000;

interface Parts {
  readonly connections: readonly Postgres[];
  readonly jobs: JobStore;
  readonly queues: QueueStore;
  readonly schedules: ScheduleStore;
  readonly terms: TermStore;
  readonly samples: SampleStore;
  readonly agents: AgentStore;
  readonly journal: JournalStore;
  readonly access: AccessStore;
  readonly ownership: OwnershipStore;
}

/** The shared store: one database, any number of nodes. */
export class PostgresStore extends Lifecycle implements Store {
  readonly guarantees: Guarantees = { name: "postgres", durability: "power loss", shared: true };
  /** A database that is away comes back: no call of ours leaves the store unusable for good. */
  readonly problem = null;
  readonly #options: PostgresStoreOptions;
  #parts: Parts | null = null;

  constructor(options: PostgresStoreOptions) {
    super();
    const { pooler = new PoolerCheck(options) } = options;
    this.#options = { ...options, pooler };
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

  get ownership(): OwnershipStore {
    return this.#open().ownership;
  }

  protected async onStart(): Promise<void> {
    const db = new Postgres(this.#options);
    // Of their own: a lease must not run out because the pool is full of statements that hang.
    const renewals = new Postgres({ ...this.#options, connections: 1, connectMs: RENEWAL_CONNECT_MS });
    const ledger = new Ledger(db, this.#options.time ?? null);
    await db.start();
    try {
      await migrate(db);
      await ledger.learnAllKinds();
      await renewals.start();
    } catch (error) {
      await db.stop();
      throw error;
    }
    const terms = new PostgresTerms(db);
    const submit = new Submit(ledger, terms);
    const parts = { ledger, terms, submit, renewals };
    this.#parts = {
      connections: [db, renewals],
      terms,
      jobs: new PostgresJobs(parts),
      queues: new PostgresQueues(ledger),
      schedules: new PostgresSchedules(parts),
      samples: new PostgresSamples(parts),
      agents: new PostgresAgents(parts),
      journal: new PostgresJournal(parts),
      access: new PostgresAccess(parts),
      ownership: new PostgresOwnership({ ...parts, clock: this.#options.clock }),
    };
  }

  protected async onStop(): Promise<void> {
    await Promise.all(this.#parts?.connections.map((each) => each.stop()) ?? []);
  }

  #open(): Parts {
    if (!this.#parts) throw new BatonError("STOPPED", "the store has not been started");
    return this.#parts;
  }
}

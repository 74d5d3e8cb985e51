import { BatonError } from "../../core/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import { Postgres, type PostgresOptions } from "../../platform/drivers/postgres.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { Guarantees, JobStore, QueueStore, ScheduleStore, Store, TermStore } from "../store.ts";
import { PostgresJobs } from "./jobs.ts";
import { Ledger } from "./ledger.ts";
import { PostgresQueues } from "./queues.ts";
import { PostgresSchedules } from "./schedules.ts";
import { migrate } from "./schema.ts";
import { Submit } from "./submit.ts";
import { PostgresTerms } from "./terms.ts";

export interface PostgresStoreOptions extends PostgresOptions {
  /** Takes the place of the database's clock: for tests, which move it by hand. */
  readonly time?: Clock;
}

interface Parts {
  readonly db: Postgres;
  readonly jobs: JobStore;
  readonly queues: QueueStore;
  readonly schedules: ScheduleStore;
  readonly terms: TermStore;
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
    this.#options = options;
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

  protected async onStart(): Promise<void> {
    const db = new Postgres(this.#options);
    await db.start();
    try {
      await migrate(db);
    } catch (error) {
      await db.stop();
      throw error;
    }
    const ledger = new Ledger(db, this.#options.time ?? null);
    const terms = new PostgresTerms(db);
    const submit = new Submit(ledger);
    const parts = { ledger, terms, submit };
    this.#parts = {
      db,
      terms,
      jobs: new PostgresJobs(parts),
      queues: new PostgresQueues(ledger),
      schedules: new PostgresSchedules(parts),
    };
  }

  protected async onStop(): Promise<void> {
    await this.#parts?.db.stop();
  }

  #open(): Parts {
    if (!this.#parts) throw new BatonError("STOPPED", "the store has not been started");
    return this.#parts;
  }
}

// The adapter interface: everything a queue has to offer to take part in the measurements.

/** One job. `n` numbers the jobs of a run from 0 (for the exactly-once check), `t` is when enqueue was called (µs). */
export interface Job {
  n: number;
  t: number;
  pad: string;
}

/** Where the servers of this run are. */
export interface Context {
  pgUrl: string;
  redis: { everysec: { host: string; port: number }; always: { host: string; port: number } };
  /** A directory for file stores; the same one for all processes of a contender. */
  dataDir: string;
}

/**
 * throughput: the best settings for draining a backlog of no-op jobs; nothing kept unless the queue must.
 * retain:     the same, but completed jobs are kept (only for contenders with `keeps`).
 * latency:    the best settings for picking up a single job quickly.
 * recover-default / recover-tight: one job at a time; crash detection at the defaults / as tight as supported.
 */
export type WorkMode = "throughput" | "retain" | "latency" | "recover-default" | "recover-tight";

export type Handler = (job: Job) => void | Promise<void>;

export interface Contender {
  /** Connects, and creates the tables if they are missing. Called once in every process. */
  start(): Promise<void>;
  /** Forgets every job and all history. */
  reset(): Promise<void>;
  /** Resolves when the job is as durable as this contender makes it. */
  enqueue(job: Job): Promise<unknown>;
  /** The bulk call. */
  enqueueMany(jobs: Job[]): Promise<unknown>;
  /** Starts working; resolves when the worker is ready. Runs until stop(). */
  work(mode: WorkMode, handler: Handler): Promise<void>;
  /** How many jobs are waiting or running, as the store says. 0 ends a drain. */
  unfinished(): Promise<number>;
  stop(): Promise<void>;
  /** Puts `count` completed jobs into the store, shaped as this contender keeps them. */
  seedHistory?(count: number): Promise<void>;
  /** Bytes that the store uses (memory for Redis, relation size for Postgres, file size for SQLite). */
  storeBytes?(): Promise<number>;
}

export interface Entry {
  name: string;
  kind: "peer" | "floor" | "ours";
  store: "postgres" | "redis-everysec" | "redis-always" | "sqlite";
  /** What a resolved enqueue survives. */
  durability: string;
  /** The settings used, for the report. */
  settings: string;
  create(context: Context): Contender;
  /** Jobs in one drain; aim at one to two seconds on this machine (--scale lengthens it). */
  drainJobs: number;
  /** How many worker processes it can have (default 4). */
  processes?: number;
  /** The store lives inside the process: producer and worker share one process. */
  inProcess?: boolean;
  /** The store is a library: latency is also measured with producer and worker in one process. */
  embedded?: boolean;
  /** Completed jobs can be kept. */
  keeps?: boolean;
  /** Jobs in one drain with history, if half of drainJobs would take too long. */
  historyJobs?: number;
  /** Crash detection: what is documented, and whether it is worth waiting for. */
  recovery?: { default: string; measureDefault: boolean; tight: string | null };
}

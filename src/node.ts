/**
 * One node: everything is built and wired here, and nowhere else.
 *
 *   start   store, channels, coordination, election, (first term: recovery), worker, duties, HTTP
 *   stop    say "draining", resign, drain the worker, then the same list backwards
 */

import { hostname } from "node:os";
import type { NodeServices, SubmitRequest, TaskInfo } from "./api/services.ts";
import { openChannels } from "./channels/open.ts";
import { LeaderDuties } from "./cluster/leader-duties.ts";
import { Readiness } from "./cluster/readiness.ts";
import { loadSettings } from "./config/load.ts";
import type { Settings } from "./config/settings.ts";
import { Elector } from "./coordination/elector.ts";
import { openCoordination } from "./coordination/open.ts";
import { BatonError } from "./core/errors.ts";
import { jobId, type JobId, type NodeName } from "./core/ids.ts";
import type { NodeIdentity } from "./core/node.ts";
import type { Term } from "./core/term.ts";
import { HttpServer } from "./http/server.ts";
import { JobHandle } from "./jobs/job-handle.ts";
import { JobService } from "./jobs/job-service.ts";
import { JobWatchers } from "./jobs/job-watchers.ts";
import { LeaseReaper } from "./jobs/lease-reaper.ts";
import { retentionDuty } from "./jobs/retention.ts";
import { scheduleDuty } from "./jobs/schedule-duty.ts";
import { ScheduleService } from "./jobs/schedule-service.ts";
import { Submitter } from "./jobs/submitter.ts";
import type { AnyTask, Task } from "./jobs/task.ts";
import { loadTaskFolder } from "./jobs/task-folder.ts";
import { TaskRegistry } from "./jobs/task-registry.ts";
import { ThreadPool } from "./jobs/thread-pool.ts";
import { Worker } from "./jobs/worker.ts";
import { systemClock, type Clock } from "./platform/clock.ts";
import { silentLog, type Log } from "./platform/log.ts";
import { systemRandom, type Random } from "./platform/random.ts";
import { Lifecycle, type Service } from "./platform/service.ts";
import { openStore } from "./store/open.ts";
import type { Author, Guarantees } from "./store/store.ts";
import { VERSION } from "./version.ts";

export interface NodeOptions {
  /** Everything, as `loadSettings` gives it; without it the environment and a `baton.yaml` are read. */
  readonly settings?: Settings;
  /** Tasks defined in code, beside those out of `settings.tasks` folders. */
  readonly tasks?: readonly AnyTask[];
  readonly log?: Log;
  readonly clock?: Clock;
  readonly random?: Random;
  /** False for a node without a listener, used in process only. */
  readonly http?: boolean;
}

/** A node alone waits so long for its first term; only a broken store makes it take more than milliseconds. */
const FIRST_TERM_MS = 10_000;

/**
 * The embedded store can be opened by one process only, so its file lock tells that a claimant is alive: leases there
 * do not run out (a hundred years), and a blocked event loop does not cost a node its own jobs. After a crash the next
 * start takes them back at once.
 */
const EMBEDDED_LEASE_MS = 100 * 365 * 24 * 3_600_000;

export async function createNode(options: NodeOptions = {}): Promise<BatonNode> {
  const settings = options.settings ?? loadSettings().settings;
  const tasks = new TaskRegistry(options.tasks);
  for (const dir of settings.tasks) for (const task of await loadTaskFolder(dir)) tasks.add(task);
  return new BatonNode(settings, tasks, options);
}

export class BatonNode extends Lifecycle {
  readonly #services: NodeServices;
  readonly #parts;
  readonly #settings: Settings;
  readonly #log: Log;
  readonly #clock: Clock;
  #draining = false;
  #hurry = new AbortController();
  #stopped = new AbortController();
  #author: Author;

  constructor(settings: Settings, tasks: TaskRegistry, options: NodeOptions) {
    super();
    const { log = silentLog, clock = systemClock, random = systemRandom } = options;
    this.#settings = settings;
    this.#log = log;
    this.#clock = clock;
    const identity: NodeIdentity = { name: settings.name as NodeName, incarnation: random.uuid() };
    const startedAt = clock.now();
    const host = hostname(); // a system call, and `info` is read with every request
    this.#author = { node: identity.name, ownerEpoch: 0, leaderEpoch: 0 };
    const author = (): Author => this.#author;
    const mintId = (): JobId => jobId(identity.name, random.timedUuid());
    const budgets = {
      interruptionsMax: settings.jobs.interruptionsMax,
      crashesMax: settings.jobs.crashesMax,
    };
    const abortGraceMs = settings.drain.cleanupMs;

    const store = openStore({ kind: settings.store, dir: settings.data, clock });
    const channels = openChannels({ kind: "memory", clock, log });
    const watchers = new JobWatchers(clock);
    const coordination = openCoordination({
      kind: "standalone",
      identity,
      clock,
      terms: {
        grant: (role, candidate) => store.terms.grant(role, candidate),
        admit: (term) => store.terms.admit(term),
        read: (role) => store.terms.read(role),
      },
      info: () => ({
        url: this.#parts.http?.running ? this.#parts.http.url : null,
        hostname: host,
        roles: ["gateway", "worker", "scheduler"],
        capabilities: [...tasks.names()],
        version: VERSION,
        startedAt,
        load: { jobs: this.#parts.worker.active, connections: 0, cpu: 0, memory: 0, loopLagMs: 0 },
      }),
    });
    const elector = new Elector({
      lock: coordination.lock("scheduler"),
      identity,
      role: "scheduler",
      clock,
      random,
      settings: settings.leader,
      log,
    });

    const threads = new ThreadPool({ clock, abortGraceMs });
    const queues = settings.worker.queues.length > 0 ? new Set(settings.worker.queues) : null;
    const worker = new Worker({
      store,
      tasks,
      threads,
      channels,
      clock,
      identity,
      author,
      log,
      rules: { budgets, retry: retryPolicy(settings), chance: () => random.chance() },
      settings: {
        concurrency: settings.worker.concurrency,
        queues,
        leaseMs: store.guarantees.shared ? settings.worker.leaseMs : EMBEDDED_LEASE_MS,
        renewMs: settings.worker.renewMs,
        prefetchMax: settings.worker.prefetchMax,
        abortGraceMs,
      },
      onChange: (id) => watchers.changed(id),
    });
    const submitter = new Submitter({
      node: identity.name,
      store,
      tasks,
      random,
      author,
      defaults: { maxAttempts: settings.jobs.maxAttempts, timeoutMs: settings.jobs.timeoutMs },
      // A turn later: the claim then shares a commit with what the callers submit next. At once, it would commit alone,
      // and a lone caller would wait for two fsyncs each time.
      onStored: () => setImmediate(() => worker.wake()),
    });
    const draining = (): boolean => this.#draining;
    const jobs = new JobService({
      store,
      submitter,
      tasks,
      channels,
      watchers,
      worker: {
        get draining() {
          return draining();
        },
        concurrency: settings.worker.concurrency,
        budgets,
        queues,
      },
      onReady: () => worker.wake(),
    });
    const reaper = new LeaseReaper({
      store,
      clock,
      budgets,
      intervalMs: settings.worker.renewMs,
      log,
      onRecovered: (id) => {
        watchers.changed(id);
        worker.wake();
      },
    });
    const duties = new LeaderDuties({
      leadership: elector,
      clock,
      log,
      duties: {
        schedules: scheduleDuty({
          store,
          channels,
          clock,
          random,
          mintId,
          author,
          log,
        }),
        leases: (term, signal) => reaper.duty(term, signal),
        retention: retentionDuty({ store, clock, retention: settings.retention }),
      },
    });
    const schedules = new ScheduleService({
      store,
      submit: (requests) => jobs.submit(requests),
      tasks,
      channels,
      clock,
      maxAttempts: settings.jobs.maxAttempts,
      timeoutMs: settings.jobs.timeoutMs,
      log,
    });

    this.#services = {
      identity,
      version: VERSION,
      startedAt,
      clock,
      guarantees: store.guarantees,
      jobs,
      queues: {
        list: () => store.queues.list(),
        setPaused: async (queue, paused) => {
          await store.queues.setPaused(queue, paused);
          worker.wake();
        },
      },
      schedules,
      leadership: elector,
      membership: coordination.membership,
      health: new Readiness({ draining, store, leadership: elector }),
      tasks,
    };
    const http =
      options.http === false
        ? null
        : new HttpServer({
            services: this.#services,
            host: settings.http.host,
            port: settings.http.port,
            bodyLimitBytes: settings.http.bodyLimitBytes,
            log,
            clock,
          });
    this.#parts = { store, channels, coordination, elector, threads, worker, duties, reaper, tasks, http };
  }

  /** What the API works with, for use in the same process. */
  get services(): NodeServices {
    return this.#services;
  }

  /** Submits a job from this process. With a task of one's own, payload and result are typed. */
  async submit<Result, Input>(
    task: Task<any, Result, Input> | string,
    payload: Input,
    options: Omit<SubmitRequest, "task" | "payload"> = {},
  ): Promise<JobHandle<Awaited<Result>>> {
    const { jobs } = this.#services;
    const name = typeof task === "string" ? task : task.name;
    const [submitted] = await jobs.submit([{ ...options, task: name, payload }]);
    return new JobHandle(jobs, submitted!);
  }

  get url(): string {
    if (!this.#parts.http) throw new BatonError("STOPPED", "this node has no HTTP listener");
    return this.#parts.http.url;
  }

  get guarantees(): Guarantees {
    return this.#services.guarantees;
  }

  tasks(): readonly TaskInfo[] {
    return this.#parts.tasks.list();
  }

  /** What runs here now. */
  runningJobs(): readonly { readonly id: JobId; readonly task: string }[] {
    return this.#parts.worker.list();
  }

  /** Drains and stops. With `hurry`, also while a gentle stop is under way, running jobs are told to stop now. */
  override stop(options: { readonly hurry?: boolean } = {}): Promise<void> {
    if (options.hurry) this.#hurry.abort();
    return super.stop();
  }

  protected async onStart(): Promise<void> {
    const { store, channels, coordination, elector, threads, worker, duties, http } = this.#parts;
    const started: Service[] = [];
    this.#draining = false;
    this.#hurry = new AbortController();
    this.#stopped = new AbortController();
    try {
      for (const service of [store, channels, coordination, threads, elector]) {
        await service.start();
        started.push(service);
      }
      await this.#firstTerm();
      for (const service of [worker, duties, ...(http ? [http] : [])]) {
        await service.start();
        started.push(service);
      }
      await coordination.membership.setStatus("active");
    } catch (error) {
      this.#stopped.abort();
      await this.#stopAll(started);
      throw error;
    }
  }

  protected async onStop(): Promise<void> {
    const { store, channels, coordination, elector, threads, worker, duties, http } = this.#parts;
    this.#draining = true;
    await coordination.membership.setStatus("draining");
    // Leadership goes first: others may schedule and recover while we still wait for running jobs.
    this.#stopped.abort();
    await this.#stopAll([elector, duties]);
    const { timeoutMs, cleanupMs } = this.#settings.drain;
    const { interrupted } = await worker.drain({ timeoutMs, cleanupMs, hurry: this.#hurry.signal });
    if (interrupted > 0)
      this.#log.info({ jobs: interrupted }, "running jobs were interrupted and will run again");
    await this.#stopAll([store, coordination, channels, threads, worker, ...(http ? [http] : [])]);
  }

  /** In reverse order. What cannot be stopped is logged: expiry is the net. */
  async #stopAll(services: readonly Service[]): Promise<void> {
    for (const service of [...services].reverse()) {
      try {
        await service.stop();
      } catch (error) {
        this.#log.error({ err: error }, "a service did not stop cleanly");
      }
    }
  }

  /** Waits for our first term and takes back what an earlier life of this node left running. */
  async #firstTerm(): Promise<void> {
    const { elector, reaper } = this.#parts;
    const giveUp = new AbortController();
    const cancel = this.#clock.after(FIRST_TERM_MS, () => giveUp.abort());
    for await (const term of elector.changes(giveUp.signal)) {
      if (!term) continue;
      this.#adopt(term);
      break;
    }
    cancel();
    const term = elector.held();
    if (!term)
      throw new BatonError(
        "NO_LEADER",
        `no leadership within ${FIRST_TERM_MS / 1_000} s; see the log for the reason`,
      );
    const { name, incarnation } = this.#services.identity;
    const { shared } = this.#services.guarantees;
    // A store of our own is ours whatever we were called before: container hosts have a new name at each start.
    const left = shared ? ({ by: "node", node: name } as const) : ({ by: "everybody" } as const);
    await reaper.recover({ ...left, except: incarnation }, term);
    void this.#followTerms();
  }

  async #followTerms(): Promise<void> {
    for await (const term of this.#parts.elector.changes(this.#stopped.signal)) if (term) this.#adopt(term);
  }

  #adopt(term: Term): void {
    const { name } = this.#services.identity;
    this.#author = { node: name, ownerEpoch: term.epoch, leaderEpoch: term.epoch };
  }
}

function retryPolicy({ retry }: Settings) {
  const { firstDelayMs, factor, maxDelayMs, jitter } = retry;
  return { firstDelayMs, factor, delayMsMax: maxDelayMs, jitter };
}

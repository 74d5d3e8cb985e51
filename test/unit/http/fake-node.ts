/** A small node without a store of jobs: enough behaviour behind the API that its answers mean something. */

import { EventEmitter, on } from "node:events";
import { after, before, beforeEach } from "node:test";
import type { FastifyInstance, InjectOptions } from "fastify";
import { operationExecutor, type OperationExecutor } from "../../../src/api/execute.ts";
import { buildApp, type AppOptions } from "../../../src/http/app.ts";
import { HttpServer, type HttpServerOptions } from "../../../src/http/http-server.ts";
import { InFlight } from "../../../src/platform/in-flight.ts";
import type { Platform } from "../../../src/platform/platform.ts";
import type { Tracing } from "../../../src/platform/tracing.ts";
import { liveFeed } from "../../../src/api/live-feed.ts";
import type { ClusterSample } from "../../../src/observe/metrics/metrics-duty.ts";
import type { FunctionAnswer } from "../../../src/jobs/submit/function-calls.ts";
import type { JobView } from "../../../src/jobs/job-service.ts";
import type { NodeServices } from "../../../src/api/node-services.ts";
import { scheduleService } from "../../../src/jobs/schedules/schedule-service.ts";
import type { SubmitRequest } from "../../../src/jobs/submit/submitter.ts";
import type { StoreSnapshot } from "../../../src/observe/store-snapshots.ts";
import type { NodeRequest, Tenure } from "../../../src/leadership/coordination.ts";
import { BatonError } from "../../../src/core/errors.ts";
import { jobId } from "../../../src/core/ids.ts";
import type { JobId, NodeName } from "../../../src/core/ids.ts";
import { isFinal } from "../../../src/core/jobs/job.ts";
import type { Job, JobStatus } from "../../../src/core/jobs/job.ts";
import { isLoopback, LOOPBACK } from "../../../src/core/access/permissions.ts";
import { countNodes, NODE_ROLES } from "../../../src/core/node.ts";
import type { NodeInfo, NodeRole } from "../../../src/core/node.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { nodeInfo } from "../../support/job-builders.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { memoryStore } from "../../support/memory-store.ts";
import { silentLog, type Log } from "../../../src/platform/log.ts";
import type { JournalEntry } from "../../../src/store/journal.ts";
import type { JobRuns } from "../../../src/store/jobs.ts";
import type { Guarantees, LogLine } from "../../../src/store/store.ts";

export const NAME = "node-a" as NodeName;

const TERM: Term = { role: "scheduler", leader: NAME, incarnation: "inc-1234567", epoch: 7 };

type Method = "GET" | "POST" | "PUT" | "DELETE";
type Mutable<T> = { -readonly [K in keyof T]: T[K] };
interface Kept {
  readonly arrival: number;
  job: Mutable<Job>;
  result: string | null;
  logs: LogLine[];
}

export class FakeNode implements NodeServices {
  readonly identity: { readonly name: NodeName; readonly incarnation: string };
  readonly version = "0.0.0-test";
  readonly clock = new ManualClock();
  readonly startedAt = this.clock.now() - 5_000;
  guarantees: Guarantees = { name: "fake", durability: "nothing", shared: false, keepsTokenFile: false };
  roles: ReadonlySet<NodeRole> = new Set(NODE_ROLES);
  /** Beside this node. */
  others: readonly NodeInfo[] = [];
  notes: readonly string[] = [];
  minimumNodes = 1;
  readonly asked: [NodeName, NodeRequest][] = [];
  samples: readonly ClusterSample[] = [];
  /** What a call of a function is answered; null lets it run out of time. */
  ending: { status: JobStatus; result: unknown } | null = { status: "completed", result: null };
  readonly kept = new Map<string, Kept>();
  readonly runsOf = new Map<string, JobRuns>();
  readonly paused = new Set<string>();
  #random = seededRandom(1);
  #arrivals = 0;
  readonly #changed = new EventEmitter().setMaxListeners(0);

  constructor(name: NodeName = NAME) {
    this.identity = { name, incarnation: TERM.incarnation };
  }

  leading = true;
  submits = 0;
  trouble: Error | null = null;
  hold: Promise<void> | null = null;
  health = {
    draining: false,
    forming: null as string | null,
    problem: null as string | null,
    broken: null as string | null,
    async ready() {
      const store = this.broken === null ? { ok: true } : { ok: false, reason: this.broken };
      const cluster = this.forming === null ? { ok: true } : { ok: false, reason: this.forming };
      return { ready: store.ok && cluster.ok && !this.draining, checks: { store, cluster } };
    },
  };

  work = {
    check: async () => ({
      ok: true,
      code: "working" as const,
      reason: "0 of 4 places are in use; nothing waits for it",
      slots: 4,
      running: 0,
      ready: 0,
      lastClaimMs: 12.3,
      claimUnderWayMs: null,
    }),
  } as NodeServices["work"];

  readonly metrics = {
    contentType: "text/plain; version=0.0.4; charset=utf-8",
    text: async () => 'baton_build_info{node="fake"} 1\n',
  };

  readonly tasks = {
    list: () => [{ name: "hello", isolation: "none", hasSchema: true, schema: { type: "object" } } as const],
  };

  readonly leadership = {
    current: () => TERM,
    held: () => (this.leading ? TERM : null),
    require: () => TERM,
    silence: () => null,
    changes: () => {
      throw new Error("not asked for by the API");
    },
  };

  readonly membership = {
    nodes: (): readonly NodeInfo[] => [
      nodeInfo(this.identity.name, {
        incarnation: TERM.incarnation,
        url: "http://127.0.0.1:4000",
        hostname: "localhost",
        address: "127.0.0.1",
        httpPort: 4000,
        roles: [...this.roles],
        version: this.version,
        startedAt: this.startedAt,
        lastSeenAt: this.startedAt,
        load: { jobs: 2, connections: 3, cpu: 0.25, memory: 0.5, loopLagMs: 1.5 },
      }),
      ...this.others,
    ],
    setStatus: async () => {},
    ask: notOfTheApi,
    requests: notOfTheApi,
    displaced: () => null,
    findDead: notOfTheApi,
    markRecovered: notOfTheApi,
  };

  get controller(): NodeServices["controller"] {
    throw new BatonError("STOPPED", "this node has no controller");
  }
  /** Asks nobody, and keeps no credentials. */
  readonly access: NodeServices["access"] = {
    open: true,
    first: null,
    get tokens(): never {
      throw new BatonError("NOT_FOUND", "this node keeps no credentials");
    },
    get users(): never {
      throw new BatonError("NOT_FOUND", "this node keeps no credentials");
    },
  };

  readonly cluster: NodeServices["cluster"] = {
    info: () => {
      const counts = countNodes(this.membership.nodes());
      return {
        name: "fakes",
        totalNodes: counts.total,
        activeNodes: counts.active,
        drainingNodes: counts.draining,
        deadNodes: counts.dead,
        joiningNodes: counts.joining,
        schedulerLeader: TERM.leader,
        minimumNodes: this.minimumNodes,
        formed: this.health.forming === null,
        fabric: { coordination: "standalone", channels: "memory", dispatch: "pull" },
        notes: this.notes,
        limits: [],
      };
    },
    nodes: () => this.membership.nodes(),
    leaders: async (): Promise<readonly Tenure[]> => {
      const now = this.clock.now();
      const term = { ...TERM, acquiredAt: now - 60_000 };
      return [
        { ...term, leaseUntil: now + 1 },
        { ...term, role: "log_compactor", leaseUntil: now },
      ];
    },
    ask: async (name, request) => {
      const living = this.membership.nodes().some((node) => node.name === name && node.status !== "dead");
      if (living) this.asked.push([name, request]);
      return living;
    },
    remove: async (name: NodeName) => this.membership.nodes().some((node) => node.name === name),
    metrics: async (limit) => this.samples.slice(0, limit),
  };

  look: StoreSnapshot = NO_LOOK;
  looks = 0;
  readonly insight: NodeServices["insight"] = {
    read: async () => {
      this.looks++;
      return this.look;
    },
  };
  readonly live: NodeServices["live"] = liveFeed(this);
  readonly settings: NodeServices["settings"] = {
    list: () => [{ path: "http.port", value: 8420, source: "default", isDefault: true }],
  };

  written: JournalEntry[] = [];
  readonly journal: NodeServices["journal"] = {
    note: ({ kind, actor = null, subject = null, detail = {} }) => {
      const id = String(this.written.length + 1);
      const node = this.identity.name;
      this.written.push({ id, at: this.clock.now(), kind, node, actor, subject, detail });
    },
    list: async ({ kinds, subject, before, limit }) =>
      this.written
        .toReversed()
        .filter((entry) => before === undefined || Number(entry.id) < Number(before))
        .filter((entry) => subject === undefined || entry.subject === subject)
        .filter((entry) => !kinds || kinds.includes(entry.kind))
        .slice(0, limit),
  };

  readonly functions: NodeServices["functions"] = {
    timeoutMs: 30_000,
    call: async (task, payload, { timeoutMs }): Promise<FunctionAnswer> => {
      const [submitted] = await this.jobs.submit([{ task, payload, queue: "functions", timeoutMs }]);
      const { id } = submitted!;
      if (this.ending === null) return { ended: false, id };
      this.finish(id, this.ending.status, this.ending.result);
      const { job, result } = this.kept.get(id)!;
      return { ended: true, job, result };
    },
  };

  readonly jobs: NodeServices["jobs"] = {
    submit: async (requests) => {
      this.submits++;
      if (this.hold) await this.hold;
      if (this.trouble) throw this.trouble;
      requests.forEach((request, index) => {
        if (request.task !== "picky" || request.payload !== undefined) return;
        const field = requests.length === 1 ? "payload" : `[${index}].payload`; // as the submitter names it
        throw new BatonError("BAD_PAYLOAD", `"${field}" is needed by the task picky`, { field });
      });
      return requests.map((request) => this.#submit(request));
    },
    get: async (id) => {
      const kept = this.kept.get(id);
      return kept ? ({ ...kept.job, waitingFor: this.#waiting(kept.job) } satisfies JobView) : null;
    },
    result: async (id) => this.kept.get(id)?.result ?? null,
    list: async (query) => {
      const below = query.cursor === undefined ? Infinity : Number(query.cursor);
      if (Number.isNaN(below)) {
        throw new BatonError("BAD_REQUEST", '"cursor" is not one of ours', { field: "cursor" });
      }
      const all = [...this.kept.values()]
        .reverse()
        .filter(({ arrival }) => arrival < below)
        .filter(({ job }) => query.status === undefined || job.status === query.status)
        .filter(({ job }) => query.queue === undefined || job.queue === query.queue)
        .filter(({ job }) => query.task === undefined || job.task === query.task)
        .filter(({ job }) => query.since === undefined || job.createdAt >= query.since)
        .filter(({ job }) => query.until === undefined || job.createdAt < query.until)
        .filter(({ job }) => query.errorCode === undefined || job.error?.code === query.errorCode);
      const page = all.slice(0, query.limit);
      const cursor = page.length < all.length ? String(page.at(-1)!.arrival) : null;
      return { jobs: page.map(({ job }) => job), cursor };
    },
    brief: async (query) => {
      const { jobs, cursor } = await this.jobs.list(query);
      return {
        jobs: jobs.map(({ id, task, queue, status, createdAt, finishedAt, error }) => {
          return { id, task, queue, status, createdAt, finishedAt, error };
        }),
        cursor,
      };
    },
    runs: async (id) => this.runsOf.get(id) ?? { past: [], assignments: [] },
    logs: async (id, after, limit) =>
      (this.kept.get(id)?.logs ?? []).filter((line) => line.seq > after).slice(0, limit),
    cancel: async (id, reason) => {
      const job = this.kept.get(id)?.job;
      if (!job) return { outcome: "missing" };
      if (isFinal(job.status)) return { outcome: "finished", status: job.status };
      if (job.status === "processing") {
        job.cancelRequested = true;
        this.#touch(id);
        return { outcome: "requested" };
      }
      job.status = "cancelled";
      job.error = { code: "CANCELLED", message: reason ?? "cancelled" };
      this.#touch(id);
      return { outcome: "cancelled" };
    },
    retry: async (id) => {
      const job = this.kept.get(id)?.job;
      if (!job) return "missing";
      if (job.status !== "failed" && job.status !== "cancelled") return job.status;
      job.status = "queued";
      this.#touch(id);
      return "retried";
    },
    remove: async (id) => {
      const job = this.kept.get(id)?.job;
      if (!job) return "missing";
      if (job.status === "processing") return "running";
      this.kept.delete(id);
      this.#touch(id);
      return "removed";
    },
    changes: (id, signal) => this.#changes(id, signal),
  };

  readonly queues: NodeServices["queues"] = {
    list: async () => {
      const names = new Set([...this.kept.values()].map(({ job }) => job.queue).concat(...this.paused));
      return [...names].sort().map((name) => ({
        name,
        paused: this.paused.has(name),
        counts: this.#counts(name),
        oldestAt: this.#oldestAt(name),
      }));
    },
    setPaused: async (queue, paused) => void (paused ? this.paused.add(queue) : this.paused.delete(queue)),
  };

  schedules: NodeServices["schedules"] = this.#newSchedules();

  // ---------------------------------------------------------------- what a worker would do

  reset(): void {
    this.kept.clear();
    this.runsOf.clear();
    this.schedules = this.#newSchedules();
    this.paused.clear();
    this.submits = 0;
    this.leading = true;
    this.trouble = null;
    this.hold = null;
    this.health.draining = false;
    this.health.forming = null;
    this.health.broken = null;
    this.guarantees = { name: "fake", durability: "nothing", shared: false, keepsTokenFile: false };
    this.roles = new Set(NODE_ROLES);
    this.others = [];
    this.notes = [];
    this.minimumNodes = 1;
    this.asked.length = 0;
    this.written = [];
    this.look = NO_LOOK;
    this.looks = 0;
    this.samples = [];
    this.ending = { status: "completed", result: null };
  }

  join(name: string, over: Partial<NodeInfo> = {}): void {
    const self = this.membership.nodes()[0]!;
    this.others = [...this.others, { ...self, name: name as NodeName, url: `http://${name}:8420`, ...over }];
  }

  /** Ids of two fakes that begin with the same seed differ in their names alone. */
  seed(seed: number): void {
    this.#random = seededRandom(seed);
  }

  id(): JobId {
    return jobId(this.identity.name, this.#random.timedUuid());
  }

  add(status: JobStatus = "queued", over: Partial<Job> = {}): JobId {
    const { id } = this.#submit({ task: "hello", payload: { n: 1 } });
    Object.assign(this.kept.get(id)!.job, { status }, over);
    return id;
  }

  log(id: JobId, message: string): void {
    const { logs } = this.kept.get(id)!;
    logs.push({ seq: logs.length + 1, at: this.clock.now(), level: "info", message, jobEpoch: 1 });
    this.#touch(id);
  }

  progress(id: JobId, value: number, message: string | null = null): void {
    Object.assign(this.kept.get(id)!.job, { progress: value, progressMessage: message });
    this.#touch(id);
  }

  finish(id: JobId, status: JobStatus, result: unknown = null): void {
    const kept = this.kept.get(id)!;
    kept.job.status = status;
    kept.result = status === "completed" ? JSON.stringify(result) : null;
    if (status === "failed") kept.job.error = { code: "ERROR", message: "it broke" };
    this.#touch(id);
  }

  /** How many follow a job at the moment. */
  followers(id: JobId): number {
    return this.#changed.listenerCount(id);
  }

  #touch(id: JobId): void {
    this.#changed.emit(id);
  }

  async *#changes(id: JobId, signal: AbortSignal): AsyncGenerator<void> {
    if (signal.aborted) return;
    const changes = on(this.#changed, id, { signal });
    yield;
    try {
      for await (const _ of changes) yield;
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #submit(request: SubmitRequest): { id: JobId; status: JobStatus; existed: boolean } {
    const key = request.idempotencyKey ?? null;
    const known = key && [...this.kept.values()].find(({ job }) => job.idempotencyKey === key)?.job;
    if (known) return { id: known.id, status: known.status, existed: true };
    const now = this.clock.now();
    const runAt = request.runAt ?? now + (request.delayMs ?? 0);
    const status = runAt > now ? "scheduled" : "queued";
    const id = request.id ?? this.id();
    const repeated = this.kept.get(id)?.job;
    if (repeated) return { id, status: repeated.status, existed: true };
    const job: Job = {
      id,
      task: request.task,
      queue: request.queue ?? "default",
      status,
      priority: request.priority ?? 0,
      payload: JSON.stringify(request.payload ?? null),
      progress: null,
      progressMessage: null,
      attempts: 0,
      failures: 0,
      interruptions: 0,
      crashes: 0,
      maxAttempts: request.maxAttempts ?? 3,
      timeoutMs: request.timeoutMs ?? null,
      idempotencyKey: key,
      trace: null,
      schedule: null,
      cancelRequested: false,
      createdAt: now,
      updatedAt: now,
      runAt,
      startedAt: null,
      finishedAt: null,
      owner: this.identity.name,
      worker: null,
      jobEpoch: 0,
      ownerEpoch: 1,
      leaderEpoch: TERM.epoch,
      error: null,
      killed: [],
      tags: [],
    };
    this.kept.set(id, { arrival: ++this.#arrivals, job, result: null, logs: [] });
    return { id, status, existed: false };
  }

  #waiting(job: Job): JobView["waitingFor"] {
    if (job.status !== "queued" || job.task === "hello") return null;
    return { code: "unknown_task", message: `no worker here knows the task ${job.task}` };
  }

  #oldestAt(queue: string): number | null {
    const waiting = [...this.kept.values()].filter(
      ({ job }) => job.queue === queue && job.status === "queued",
    );
    return waiting.length === 0 ? null : Math.min(...waiting.map(({ job }) => job.runAt));
  }

  #counts(queue: string): Record<JobStatus, number> {
    const counts = { scheduled: 0, queued: 0, processing: 0, completed: 0, failed: 0, cancelled: 0 };
    for (const { job } of this.kept.values()) if (job.queue === queue) counts[job.status]++;
    return counts;
  }

  #newSchedules(): ReturnType<typeof scheduleService> {
    return scheduleService(
      { clock: this.clock, log: silentLog },
      {
        store: memoryStore({ clock: this.clock }),
        channels: { publish: async () => {} },
        maxAttempts: 3,
        submit: (requests) => this.jobs.submit(requests),
      },
    );
  }
}

function notOfTheApi(): never {
  throw new Error("not asked for by the API");
}

export interface KeptLine {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** A log whose errors and warnings a test can look at. */
export function keptLog(): Log & { readonly lines: KeptLine[] } {
  const lines: KeptLine[] = [];
  const keep = (fields: Readonly<Record<string, unknown>>, message: string): void =>
    void lines.push({ fields, message });
  return { lines, debug() {}, info() {}, warn: keep, error: keep };
}

/** Nobody is asked for credentials on loopback; elsewhere nobody is known. */
export function loopbackOnly(host = "127.0.0.1") {
  return {
    open: isLoopback(host),
    anybody: LOOPBACK,
    stale: false,
    identify: () => null,
    identifyAgain: async () => null,
    knows: () => false,
    start: async () => {},
    stop: async () => {},
  };
}

const NO_TRACING: Tracing = {
  on: false,
  start: () => {
    throw new Error("nobody records traces here");
  },
  active: () => null,
  meter: () => null,
};

export function executorOf(
  services: NodeServices,
  inFlight: Pick<InFlight, "enter"> = new InFlight(services.clock),
  tracing: Tracing = NO_TRACING,
): OperationExecutor {
  return operationExecutor(services, { services, inFlight, tracing });
}

/** The HTTP server of a node, without its listener. */
export function appOf(
  services: NodeServices,
  { log = keptLog(), ...options }: Partial<AppOptions> & { readonly log?: Log } = {},
): Promise<FastifyInstance> {
  return buildApp({ clock: services.clock, log }, { ...defaults(services, options.host), ...options });
}

function defaults(services: NodeServices, host = "127.0.0.1") {
  return { executor: executorOf(services), host, bodyLimitBytes: 1_048_576, access: loopbackOnly(host) };
}

/** The same for all tests of a suite. The node is as new before each of them. */
export function suiteApp(node: FakeNode) {
  let app: FastifyInstance;
  before(async () => (app = await appOf(node)));
  beforeEach(() => node.reset());
  after(() => app.close());
  const inject = ((request: InjectOptions) => app.inject(request)) as FastifyInstance["inject"];
  const call = async (method: Method, url: string, payload?: object | string, given: object = {}) => {
    const type = typeof payload === "string" ? { "content-type": "application/json" } : {};
    const answer = await inject({ method, url, payload, headers: { ...type, ...given } });
    return { status: answer.statusCode, body: answer.json(), headers: answer.headers };
  };
  return { inject, call };
}

/** With its listener, on a free port unless another is given. */
export function serverOf(
  services: NodeServices,
  options: Partial<HttpServerOptions> = {},
  { clock = services.clock, log = keptLog() }: Partial<Pick<Platform, "clock" | "log">> = {},
): HttpServer {
  return new HttpServer({ clock, log }, { port: 0, ...defaults(services, options.host), ...options });
}

export const NO_LOOK: StoreSnapshot = {
  countedAt: null,
  jobs: { scheduled: 0, queued: 0, processing: 0, completed: 0, failed: 0, cancelled: 0 },
  queues: [],
  waiting: [],
  times: { wait: null, run: null, of: 0, failed: 0 },
  late: [],
  refused: null,
  agents: 0,
  oldestSnapshot: null,
  trouble: null,
};

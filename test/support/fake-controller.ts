/**
 * Controllers that keep the contract of /v1 towards agents, with one memory behind all of them: who leads, and what is
 * leased to whom under which epochs. Everything that an agent may meet can be made to happen: another leader, none, one that
 * hangs, one that answers nonsense, leases that are taken away.
 */

import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ResultErrorBody } from "../../src/client/controller-calls.ts";
import { atEnd, type Scope } from "./node-cleanup.ts";
import { eventually } from "./wait.ts";

export interface FakeJob {
  readonly id: string;
  readonly task: string;
  readonly payload: unknown;
  readonly maxAttempts: number;
  readonly timeoutMs: number | null;
  status: "queued" | "processing" | "completed" | "failed" | "cancelled";
  epoch: number;
  attempts: number;
  failures: number;
  lease: string | null;
  result: unknown;
  error: ResultErrorBody | null;
  cancelled: string | null;
  lines: string[];
  progress: unknown;
  /** Status and epochs of all results that were accepted. */
  accepted: string[];
}

interface FakeLease {
  readonly agent: string;
  expiresAt: number;
}

export interface Asked {
  readonly node: string;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

type Json = Record<string, unknown>;
interface Reply {
  readonly status: number;
  readonly body: unknown;
}

export class FakeControllers {
  readonly jobs = new Map<string, FakeJob>();
  readonly leases = new Map<string, FakeLease>();
  /** Of all nodes, in order. */
  readonly asked: Asked[] = [];
  readonly nodes: FakeController[] = [];
  readonly leaseMs: number;
  leader: FakeController | null = null;
  epoch = 0;
  /** Answers in place of the contract's; null for the contract's own. */
  instead: (asked: Asked) => Reply | "silence" | null = () => null;
  /** Polls that wait now. */
  polls = 0;
  #names = 0;
  #wakeUps: (() => void)[] = [];

  private constructor(leaseMs: number) {
    this.leaseMs = leaseMs;
  }

  /** So many nodes, of which the first leads. */
  static async open(t: Scope, options: { nodes?: number; leaseMs?: number } = {}): Promise<FakeControllers> {
    const cluster = new FakeControllers(options.leaseMs ?? 3_000);
    for (let n = 0; n < (options.nodes ?? 1); n++)
      cluster.nodes.push(await FakeController.open(t, cluster, n));
    cluster.lead(cluster.nodes[0]!);
    return cluster;
  }

  lead(node: FakeController | null): void {
    this.leader = node;
    if (node) this.epoch++;
    this.wake();
  }

  submit(
    task: string,
    payload: unknown = null,
    options: { maxAttempts?: number; timeoutMs?: number } = {},
  ): FakeJob {
    const uuid = `00000000-0000-7000-8000-${String(++this.#names).padStart(12, "0")}`;
    const job: FakeJob = {
      id: `fake-${uuid}`,
      task,
      payload,
      maxAttempts: options.maxAttempts ?? 3,
      timeoutMs: options.timeoutMs ?? null,
      status: "queued",
      epoch: 0,
      attempts: 0,
      failures: 0,
      lease: null,
      result: undefined,
      error: null,
      cancelled: null,
      lines: [],
      progress: null,
      accepted: [],
    };
    this.jobs.set(job.id, job);
    this.wake();
    return job;
  }

  /** As the reaper does: the jobs are back in their place, and the lease is nobody's. */
  takeAway(lease: string): void {
    this.leases.delete(lease);
    for (const job of this.jobs.values())
      if (job.lease === lease) Object.assign(job, { lease: null, status: "queued" });
    this.wake();
  }

  async until(job: FakeJob, status: FakeJob["status"], withinMs = 10_000): Promise<FakeJob> {
    return eventually(
      `${job.task} to be ${status}`,
      async () => (job.status === status ? job : null),
      withinMs,
    );
  }

  get urls(): readonly string[] {
    return this.nodes.map(({ url }) => url);
  }

  /** Calls of this kind so far. */
  calls(path: string): Asked[] {
    return this.asked.filter((asked) => asked.path === path);
  }

  wake(): void {
    for (const wakeUp of this.#wakeUps.splice(0)) wakeUp();
  }

  // ------------------------------------------------ the contract

  async answer(node: FakeController, asked: Asked, gone: Promise<void>): Promise<Reply> {
    if (asked.path === "/cluster/nodes")
      return ok({ nodes: this.nodes.map(({ name, url }) => ({ name, url })) });
    if (asked.path === "/role") return ok({ leader_epoch: this.leader ? this.epoch : null });
    if (this.leader !== node) return this.notLeader(node);
    this.#expire();
    switch (asked.path) {
      case "/v1/leases":
        return this.#lease(node, asked.body, gone);
      case "/v1/leases/renew":
        return this.#renew(asked.body);
      case "/v1/results":
        return Array.isArray(asked.body)
          ? ok((asked.body as Json[]).map((each) => this.#result(each).body))
          : this.#result(asked.body);
      case "/v1/logs":
        return this.#log(asked.body);
      case "/v1/agents/heartbeat":
        return ok({ ok: true, leader_epoch: this.epoch });
      default:
        return { status: 404, body: { error: "NOT_FOUND", message: "there is nothing here" } };
    }
  }

  notLeader(node: FakeController): Reply {
    const { leader } = this;
    const body = {
      error: "NOT_LEADER",
      leader_id: leader?.name ?? null,
      leader_url: leader?.url ?? null,
      leader_epoch: leader ? this.epoch : null,
      node_id: node.name,
      role: "STANDBY",
    };
    return { status: 409, body };
  }

  async #lease(node: FakeController, body: Json, gone: Promise<void>): Promise<Reply> {
    let left = false;
    void gone.then(() => (left = true));
    const until = performance.now() + Number(body["timeout_ms"]);
    const able = new Set(body["capabilities"] as string[]);
    for (;;) {
      if (left || this.leader !== node) return this.notLeader(node);
      const max = Number(body["max_tasks"]);
      const jobs = [...this.jobs.values()]
        .filter((job) => job.status === "queued" && able.has(job.task))
        .slice(0, max);
      if (jobs.length > 0) return this.#grant(String(body["agent"]), jobs);
      const leftMs = until - performance.now();
      if (leftMs <= 0) return { status: 204, body: null };
      let timer: NodeJS.Timeout | undefined;
      const woken = new Promise<void>((resolve) => {
        this.#wakeUps.push(resolve);
        timer = setTimeout(resolve, Math.min(leftMs, 100));
      });
      this.polls++;
      await Promise.race([woken, gone]);
      this.polls--;
      clearTimeout(timer);
      this.#expire();
    }
  }

  #grant(agent: string, jobs: readonly FakeJob[]): Reply {
    const lease = `agent:${agent}/${++this.#names}`;
    this.leases.set(lease, { agent, expiresAt: performance.now() + this.leaseMs });
    const tasks = jobs.map((job) => {
      Object.assign(job, { status: "processing", lease, epoch: job.epoch + 1, attempts: job.attempts + 1 });
      return {
        job_id: job.id,
        job_epoch: job.epoch,
        task: job.task,
        queue: "default",
        priority: 0,
        payload: job.payload,
        attempt: job.attempts,
        max_attempts: job.maxAttempts,
        failures: job.failures,
        timeout_ms: job.timeoutMs,
        created_at: "2026-01-01T00:00:00.000Z",
      };
    });
    const { epoch, leaseMs, leader } = this;
    return ok({
      lease_id: lease,
      leader_epoch: epoch,
      leader_id: leader!.name,
      expires_in_ms: leaseMs,
      tasks,
    });
  }

  #renew(body: Json): Reply {
    const id = String(body["lease_id"]);
    const lease = this.leases.get(id);
    if (!lease) return stale(null, "the lease is not held any more");
    lease.expiresAt = performance.now() + this.leaseMs;
    const cancelled = [...this.jobs.values()]
      .filter((job) => job.lease === id && job.cancelled !== null)
      .map((job) => ({ job_id: job.id, job_epoch: job.epoch, reason: job.cancelled }));
    return ok({ lease_id: id, leader_epoch: this.epoch, expires_in_ms: this.leaseMs, cancelled });
  }

  #result(body: Json): Reply {
    const job = this.jobs.get(String(body["job_id"]));
    if (!job) return { status: 404, body: { error: "NOT_FOUND", message: "there is no such job" } };
    const status = String(body["status"]);
    const words = `${status} ${String(body["job_epoch"])}/${String(body["leader_epoch"])}`;
    if (body["leader_epoch"] !== this.epoch) return stale(job, "the leader's epoch is not the current one");
    if (job.lease === null && job.accepted.at(-1) === words) return this.#accepted(job);
    if (job.lease !== body["lease_id"] || job.epoch !== body["job_epoch"])
      return stale(job, "the job has moved on");
    job.accepted.push(words);
    job.lease = null;
    this.#settle(job, status, body);
    this.wake();
    return this.#accepted(job);
  }

  #settle(job: FakeJob, status: string, body: Json): void {
    const error = (body["error"] ?? null) as ResultErrorBody | null;
    if (status === "succeeded") Object.assign(job, { status: "completed", result: body["result"] });
    else if (status === "released") Object.assign(job, { status: "queued", attempts: job.attempts - 1 });
    else if (status === "cancelled") Object.assign(job, { status: "cancelled", error });
    else {
      job.failures++;
      const final = error?.retryable === false || job.failures >= job.maxAttempts;
      Object.assign(job, { status: final ? "failed" : "queued", error });
    }
  }

  #accepted(job: FakeJob): Reply {
    return ok({ job_id: job.id, accepted: true, status: job.status, leader_epoch: this.epoch });
  }

  #log(body: Json): Reply {
    const job = this.jobs.get(String(body["job_id"]))!;
    if (body["leader_epoch"] !== this.epoch || job.lease !== body["lease_id"]) return stale(job, "not yours");
    const lines = (body["lines"] ?? []) as { message: string }[];
    job.lines.push(...lines.map(({ message }) => message));
    job.progress = body["progress"] ?? job.progress;
    return ok({ accepted: lines.length });
  }

  #expire(): void {
    for (const [id, { expiresAt }] of this.leases) if (performance.now() > expiresAt) this.takeAway(id);
  }
}

export class FakeController {
  readonly name: string;
  readonly #cluster: FakeControllers;
  readonly #server: Server;
  #port = 0;

  private constructor(cluster: FakeControllers, name: string) {
    this.name = name;
    this.#cluster = cluster;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async open(t: Scope, cluster: FakeControllers, index: number): Promise<FakeController> {
    const node = new FakeController(cluster, `fake-${index + 1}`);
    await node.listen();
    atEnd(t, () => node.close());
    return node;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** At the port that it had before, if it had one. */
  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** As kill -9 looks from outside: connections break, and no new ones are taken. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new Promise<void>((resolve) => response.once("close", resolve));
    const text = await request.toArray().then(
      (parts) => parts.join(""),
      () => null,
    );
    if (text === null) return; // broken off
    const asked: Asked = {
      node: this.name,
      path: new URL(request.url!, "http://x").pathname,
      body: (text === "" ? {} : JSON.parse(text)) as Json,
    };
    this.#cluster.asked.push(asked);
    const instead = this.#cluster.instead(asked);
    if (instead === "silence") return;
    const { status, body } = instead ?? (await this.#cluster.answer(this, asked, gone));
    response.writeHead(status, { "content-type": "application/json" });
    response.end(body === null ? "" : JSON.stringify(body));
  }
}

function ok(body: unknown): Reply {
  return { status: 200, body };
}

function stale(job: FakeJob | null, message: string): Reply {
  return {
    status: 409,
    body: { error: "STALE_EPOCH", alias: "STALE_LEASE", job_id: job?.id ?? null, message },
  };
}

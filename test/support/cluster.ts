/** Several real nodes on one real database, perhaps with a real Redis beside it, and callers that keep book of what was promised to them. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { JobRequestBody, JobSummaryBody } from "../../src/client/baton-client.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { atEnd, type Scope } from "./node-cleanup.ts";
import { PostgresServer, type ServerOptions, type SharedPostgres } from "./postgres-server.ts";
import { RedisServer, type RedisServerOptions } from "./redis-server.ts";
import { dataDirectory, NodeProcess, TEST_TOKEN, type ProcessOptions } from "./process-node.ts";
import { eventually } from "./wait.ts";

export interface ClusterOptions {
  /** A server of its own, for tests that stop or pause it. Without this, the cluster gets a database on the shared one. */
  readonly server?: ServerOptions;
  /** A server that runs already: the cluster gets an empty database there. */
  readonly on?: SharedPostgres;
  /** Whether there is a Redis of its own beside the database, and with what settings. */
  readonly redis?: RedisServerOptions;
  /** Of every node, as in the environment, without the prefix. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Everything that is waited for when a node falls silent takes 3 s. Half of that, and a busy machine looks like a dead one. */
export const QUICK: Readonly<Record<string, string>> = {
  LEADER__LEASE: "3s",
  LEADER__RENEW: "500ms",
  LEADER__MARGIN: "500ms",
  LEADER__RETRY: "100ms",
  NODE__HEARTBEAT: "250ms",
  NODE__DEAD_AFTER: "3s",
  WORKER__LEASE: "3s",
  WORKER__RENEW: "500ms",
};

/** Over those of QUICK, where nothing waits for a lease to end: the death of a process is noticed by its sessions. */
export const LONG_LEASES: Readonly<Record<string, string>> = {
  LEADER__LEASE: "20s",
  NODE__DEAD_AFTER: "20s",
  WORKER__LEASE: "20s",
};

export interface RoleBody {
  readonly role: string;
  readonly leader_epoch: number | null;
  readonly leader_id: string | null;
}

export interface Leading {
  readonly name: string;
  readonly node: NodeProcess;
  readonly epoch: number;
}

/** Nodes by name, and who leads them. */
export class NodeGroup {
  readonly nodes = new Map<string, NodeProcess>();

  node(name: string): NodeProcess {
    const node = this.nodes.get(name);
    assert.ok(node, `there is no node ${name}`);
    return node;
  }

  others(...names: string[]): NodeProcess[] {
    return [...this.nodes].filter(([name]) => !names.includes(name)).map(([, node]) => node);
  }

  async kill(name: string): Promise<void> {
    const node = this.node(name);
    this.nodes.delete(name);
    await node.kill();
  }

  /** Whoever says of itself that it leads, with its epoch, once exactly one of them does. */
  leader(withinMs?: number): Promise<Leading> {
    return eventually(
      "a leader",
      async () => {
        const leading = await this.#leading(1_000);
        return leading.length === 1 && leading[0]!;
      },
      withinMs,
    );
  }

  /** Whoever leads under a later epoch than that, also the same node again. */
  leaderAfter(epoch: number, withinMs?: number): Promise<Leading> {
    return eventually(
      `a leader after epoch ${epoch}`,
      async () => {
        const found = await this.leader(withinMs);
        return found.epoch > epoch && found;
      },
      withinMs,
    );
  }

  /** Another than that one, as soon as it says that it leads under a later epoch, and how long that took from now. */
  successor(
    { name, epoch }: Pick<Leading, "name" | "epoch">,
    withinMs?: number,
  ): Promise<Leading & { readonly tookMs: number }> {
    const from = systemClock.monotonic();
    return eventually(
      `a leader after ${name} and its epoch ${epoch}`,
      async () => {
        // It may stand still, and then nobody waits for what it says.
        const found = (await this.#leading(300, name)).find((each) => each.epoch > epoch);
        return found && { ...found, tookMs: systemClock.monotonic() - from };
      },
      withinMs,
    );
  }

  async #leading(withinMs: number, but?: string): Promise<Leading[]> {
    const asked = [...this.nodes].map(async ([name, node]) => {
      if (name === but) return [];
      const role = await roleOf(node, withinMs);
      return role?.role === "LEADER" ? [{ name, node, epoch: role.leader_epoch! }] : [];
    });
    return (await Promise.all(asked)).flat();
  }
}

export class TestCluster extends NodeGroup {
  readonly url: string;
  readonly redis: RedisServer | null;
  readonly #t: Scope;
  readonly #server: SharedPostgres;
  readonly #common: Pick<ProcessOptions, "data" | "settings">;

  private constructor(
    t: Scope,
    server: SharedPostgres,
    made: Pick<TestCluster, "url" | "redis">,
    common: Pick<ProcessOptions, "data" | "settings">,
  ) {
    super();
    this.#t = t;
    this.#server = server;
    this.url = made.url;
    this.redis = made.redis;
    this.#common = common;
  }

  /** A server with one empty database; nodes are started by name. */
  static async open(t: Scope, options: ClusterOptions = {}): Promise<TestCluster> {
    const { settings = {}, server, on } = options;
    const redis = options.redis ? await RedisServer.start(options.redis) : null;
    if (redis) atEnd(t, () => redis.stop());
    const running = on ?? (await (server ? PostgresServer.start(server) : PostgresServer.shared()));
    if (!on) atEnd(t, () => running.stop());
    const url = await running.createDatabase();
    return new TestCluster(t, running, { url, redis }, { data: await dataDirectory(t), settings });
  }

  /** For tests that stop or pause it. */
  get server(): PostgresServer {
    assert.ok(this.#server instanceof PostgresServer, "other tests use this server too");
    return this.#server;
  }

  async start(
    name: string,
    settings: Readonly<Record<string, string>> = {},
    command?: ProcessOptions["command"],
  ): Promise<NodeProcess> {
    const node = this.spawn(name, settings, command);
    await node.listening();
    this.nodes.set(name, node);
    return node;
  }

  /** A process that may or may not become a node of the cluster. */
  spawn(
    name: string,
    settings: Readonly<Record<string, string>> = {},
    command?: ProcessOptions["command"],
  ): NodeProcess {
    return NodeProcess.spawn(this.#t, {
      data: this.#common.data,
      name,
      command,
      settings: {
        STORE: this.url,
        ...(this.redis && { REDIS__URL: this.redis.url(), DISPATCH__MODE: "push" }),
        LOG__LEVEL: "info",
        RETRY__DELAY: "20ms",
        JOBS__CRASHES_MAX: "1000", // nodes are killed from outside, and no job is to blame
        ...this.#common.settings,
        ...settings,
      },
    });
  }

  async startAll(...names: string[]): Promise<NodeProcess[]> {
    const nodes = await Promise.all(names.map((name) => this.start(name)));
    await this.leader();
    return nodes;
  }

  /** Each of them also works on a queue of its own name, so that a job can be sent to it. */
  async startWithQueues(...names: string[]): Promise<void> {
    await Promise.all(names.map((name) => this.start(name, { WORKER__QUEUES: `default,${name}` })));
    await this.leader();
  }

  /**
   * A job that was begun by that node and that others may take up: one of the common queue. Whoever takes a submit is the first
   * to look for work, so it rarely takes a second try.
   */
  async begunBy(name: string, job: JobRequestBody): Promise<string> {
    const node = this.node(name);
    for (;;) {
      const { job_id } = await node.client.submit(job);
      if ((await node.processing(job_id)).worker === name) return job_id;
      await node.client.cancel(job_id);
    }
  }

  forget(name: string): void {
    this.nodes.delete(name);
  }

  sql(text: string): Promise<Record<string, unknown>[]> {
    return this.#server.query(text, this.url);
  }
}

/** Null when the node does not answer at once: dead, stopped, starting. */
export async function roleOf(node: { readonly url: string }, withinMs = 300): Promise<RoleBody | null> {
  try {
    const headers = { authorization: `Bearer ${TEST_TOKEN}` };
    const answer = await fetch(`${node.url}/role`, { headers, signal: AbortSignal.timeout(withinMs) });
    return (await answer.json()) as RoleBody;
  } catch {
    return null;
  }
}

export interface CallersOptions {
  readonly count?: number;
  readonly pauseMs?: number;
  readonly payload?: () => unknown;
}

/** Callers that submit to whichever node answers, and remember what was acknowledged and which keys are in doubt. */
export class Callers {
  readonly acknowledged = new Set<string>();
  readonly byKey = new Map<string, string>();
  refusals = 0;
  /** Others may have called the same cluster before, with other payloads. */
  readonly #name = randomUUID();
  #keys = 0;
  #stopped = false;
  #abandoned = false;
  readonly #nodes: () => readonly NodeProcess[];
  readonly #payload: () => unknown;
  readonly #loops: readonly Promise<void>[];

  private constructor({ nodes }: Pick<TestCluster, "nodes">, options: CallersOptions) {
    const { count = 6, pauseMs = 20, payload = () => ({ ms: 5 }) } = options;
    this.#nodes = () => [...nodes.values()];
    this.#payload = payload;
    this.#loops = Array.from({ length: count }, (_, n) => this.#submit(n, pauseMs));
  }

  /** From now on all nodes of the cluster have work, until the test stops them or ends. */
  static start(t: Scope, cluster: Pick<TestCluster, "nodes">, options: CallersOptions = {}): Callers {
    const callers = new Callers(cluster, options);
    atEnd(t, () => callers.#abandon());
    return callers;
  }

  async more(count = 40): Promise<void> {
    const before = this.acknowledged.size;
    await eventually("more work to be taken", () => this.acknowledged.size > before + count);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#loops);
  }

  /** For the end of a test that failed: nobody waits any more for what was not acknowledged. */
  async #abandon(): Promise<void> {
    this.#abandoned = true;
    await this.stop();
  }

  /** Every submit has a key and goes on, to another node each time, until some node has acknowledged it. */
  async #submit(n: number, pauseMs: number): Promise<void> {
    for (let turn = n; !this.#stopped;) {
      const key = `${this.#name}-${++this.#keys}`;
      const body = JSON.stringify({ task: "work", payload: this.#payload(), idempotency_key: key });
      while (!this.#abandoned) {
        const nodes = this.#nodes();
        const node = nodes[turn++ % nodes.length];
        const id = node && (await submitOnce(node, body));
        if (id) {
          this.byKey.set(key, id);
          this.acknowledged.add(id);
          break;
        }
        this.refusals++;
        await systemClock.sleep(20);
      }
      await systemClock.sleep(pauseMs);
    }
  }
}

async function submitOnce(node: NodeProcess, body: string): Promise<string | null> {
  try {
    const answer = await fetch(`${node.url}/jobs`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${TEST_TOKEN}` },
      body,
      signal: AbortSignal.timeout(3_000),
    });
    if (answer.status >= 500) {
      assert.ok(answer.headers.has("retry-after"), `a ${answer.status} without Retry-After`);
      return null;
    }
    assert.equal(answer.status, 200, answer.ok ? "" : await answer.clone().text());
    return ((await answer.json()) as { job_id: string }).job_id;
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return null;
  }
}

/** Every acknowledged job is there once and completed, with the result of its last run; every key made one job. */
export function assertNothingLost(callers: Callers, jobs: readonly JobSummaryBody[]): void {
  const byId = new Map(jobs.map((job) => [job.job_id, job]));
  for (const id of callers.acknowledged) assert.equal(byId.get(id)?.status, "completed", id);
  const keys = jobs.flatMap(({ idempotency_key }) => idempotency_key ?? []);
  assert.equal(new Set(keys).size, keys.length, "an idempotency key made two jobs");
  for (const [key, id] of callers.byKey) assert.equal(byId.get(id)?.idempotency_key, key);
}

/** Ends the load: what was promised is done, once, and nothing is left of it. */
export async function assertAllDone(cluster: TestCluster, callers: Callers): Promise<void> {
  await callers.stop();
  const node = [...cluster.nodes.values()][0]!;
  await node.idle(60_000);
  assertNothingLost(callers, await node.allJobs());
  const [row] = await cluster.sql(
    `SELECT (SELECT count(*)::int FROM baton.live) AS live,
       (SELECT count(*)::int FROM (SELECT id FROM baton.done GROUP BY id HAVING count(*) > 1) AS twice) AS twice`,
  );
  assert.deepEqual(row, { live: 0, twice: 0 });
}

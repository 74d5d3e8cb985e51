import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import type { FastifyInstance } from "fastify";
import type { Operation } from "../../../src/api/operation.ts";
import { OPERATIONS } from "../../../src/api/operation-table.ts";
import { InFlight } from "../../../src/platform/in-flight.ts";
import { BatonError } from "../../../src/core/errors.ts";
import { appOf, executorOf, FakeNode } from "./fake-node.ts";

/** What is under `/v1` has rules of its own: see v1.test.ts; and so have credentials: see access.test.ts. */
const ROWS = OPERATIONS.filter(
  // A stream that never ends is no answer to wait for.
  ({ tag, name }) => tag !== "controller" && tag !== "access" && name !== "follow_cluster",
);
const ID = "node-a-0198c0de-0000-7000-8000-000000000000";
/** A good body for each route that needs one, so that what is refused is not the body. */
const BODIES: Readonly<Record<string, object>> = {
  submit_jobs: { task: "hello" },
  call_function: {},
  post_schedule: { name: "x", task: "hello", every_ms: 60_000 },
  put_schedule: { task: "hello", every_ms: 60_000 },
  preview_timing: { every_ms: 60_000 },
  bulk_jobs: { action: "retry", filter: {} },
};

const node = new FakeNode();
let inFlight: InFlight;
let app: FastifyInstance;

before(async () => {
  const current = { enter: () => inFlight.enter() };
  app = await appOf(node, { executor: executorOf(node, current) });
});
after(() => app.close());
beforeEach(() => {
  node.reset();
  inFlight = new InFlight(node.clock);
});

async function ask(row: Operation) {
  const url = row.path.replace("{id}", ID).replace("{name}", "node-a").replace("{task}", "hello");
  const answer = await app.inject({ method: row.method, url, payload: BODIES[row.name] });
  const isText = String(answer.headers["content-type"]).startsWith("text/");
  return {
    status: answer.statusCode,
    body: isText ? answer.body : answer.json(),
    headers: answer.headers,
  };
}

const isOfCaller = (row: Operation): boolean => row.tag !== "node" && row.tag !== "cluster";

describe("a node that is no gateway", () => {
  beforeEach(() => {
    node.roles = new Set(["worker"] as const);
    node.join("gate-1", { roles: ["gateway"] });
    node.join("gate-2", { roles: ["gateway", "worker"] });
    node.join("gate-3", { roles: ["gateway"], status: "draining" });
    node.join("gate-4", { roles: ["gateway"], alive: false });
    node.join("gate-5", { roles: ["gateway"], url: null });
  });

  it("sends callers to those that are, and answers about itself and the cluster", async () => {
    for (const row of ROWS) {
      const { status, body } = await ask(row);
      if (isOfCaller(row)) {
        assert.deepEqual([status, body.error], [421, "NOT_A_GATEWAY"], row.name);
        assert.deepEqual(body.gateways, ["http://gate-1:8420", "http://gate-2:8420"]);
        assert.match(body.message, /send the request to http:\/\/gate-1:8420 or http:\/\/gate-2:8420$/);
      } else assert.ok(status < 300, `${row.name} ${status}`);
    }
    assert.equal(node.kept.size, 0);
  });

  it("says so when nobody is one", async () => {
    node.others = [];
    const { body } = await ask(ROWS.find((row) => row.name === "submit_jobs")!);
    assert.deepEqual(body.gateways, []);
    assert.match(body.message, /start a node with the role gateway/);
  });
});

describe("while the cluster forms", () => {
  beforeEach(() => {
    node.health.forming = "2 of 3 nodes";
  });

  it("changes of callers are refused for now, and everything else is answered", async () => {
    for (const row of ROWS) {
      const { status, body, headers } = await ask(row);
      if (row.name === "readyz") {
        assert.deepEqual([status, body.checks.cluster], [503, { ok: false, reason: "2 of 3 nodes" }]);
      } else if (isOfCaller(row) && row.mutates) {
        assert.deepEqual(
          [status, body.error, headers["retry-after"]],
          [503, "CLUSTER_FORMING", "1"],
          row.name,
        );
        assert.match(body.message, /2 of 3 nodes/);
      } else assert.notEqual(status, 503, row.name);
    }
    assert.equal(node.kept.size, 0);
    node.health.forming = null;
    assert.equal((await ask(ROWS.find((row) => row.name === "submit_jobs")!)).status, 200);
  });
});

describe("a node that drains", () => {
  it("refuses every change of callers for now, answers questions, and can be resumed", async () => {
    inFlight.close();
    for (const row of ROWS) {
      const { status, body, headers } = await ask(row);
      if (row.mutates && isOfCaller(row)) {
        assert.deepEqual([status, body.error, headers["retry-after"]], [503, "DRAINING", "1"], row.name);
      } else assert.notEqual(status, 503, row.name);
    }
    assert.deepEqual(node.asked, [
      ["node-a", "drain"],
      ["node-a", "resume"],
    ]);
  });

  it("waits for the changes that were let in, and for nothing else", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    node.hold = promise;
    const submitting = app
      .inject({ method: "POST", url: "/jobs", payload: { task: "hello" } })
      .then((a) => a);
    while (node.submits === 0) await new Promise((turn) => setImmediate(turn));
    assert.equal(inFlight.count, 1);
    inFlight.close();
    const drained = inFlight.drained(1_000);
    assert.equal(
      (await app.inject({ method: "POST", url: "/jobs", payload: { task: "late" } })).statusCode,
      503,
    );
    resolve();
    assert.equal((await submitting).statusCode, 200);
    assert.equal(await drained, true);
  });

  it("forgets a change that failed or was refused", async () => {
    node.trouble = new Error("no");
    assert.equal(
      (await app.inject({ method: "POST", url: "/jobs", payload: { task: "a" } })).statusCode,
      500,
    );
    node.leading = false;
    assert.equal((await app.inject({ method: "DELETE", url: "/schedules/s" })).statusCode, 409);
    assert.equal((await app.inject({ method: "POST", url: "/jobs", payload: { tsk: "a" } })).statusCode, 400);
    assert.equal(inFlight.count, 0);
  });
});

describe("a store that cannot be reached", () => {
  /** Whatever a service is asked, but for these, the store does not answer. */
  function lostBut<Service extends object>(service: Service, ...kept: (keyof Service)[]): Service {
    const lost = (): never => {
      throw new BatonError("STORE_UNAVAILABLE", "the database is not available: it is gone");
    };
    return new Proxy(service, {
      get: (target, name) => {
        if (!kept.includes(name as keyof Service)) return lost;
        const member: unknown = Reflect.get(target, name);
        return typeof member === "function" ? (member.bind(target) as unknown) : member;
      },
    });
  }
  /** Answered from what the node has in memory, so that people can look while the store is away. */
  const WITHOUT_STORE = new Set([
    "health",
    "healthz",
    "livez",
    "readyz",
    "workz",
    "prometheus",
    "role",
    "status",
    "list_tasks",
    "get_cluster",
    "list_nodes",
    "get_node",
    "preview_timing",
    "get_overview",
    "get_scaling",
    "get_settings",
  ]);

  it("is told with 503 and Retry-After by every operation that needs it", async () => {
    Object.assign(node, {
      jobs: lostBut(node.jobs),
      queues: lostBut(node.queues),
      schedules: lostBut(node.schedules, "preview"),
      functions: lostBut(node.functions, "timeoutMs"),
      journal: lostBut(node.journal),
      cluster: lostBut(node.cluster, "info", "nodes"),
    });
    for (const row of ROWS) {
      const { status, body, headers } = await ask(row);
      if (WITHOUT_STORE.has(row.name)) assert.equal(status, 200, row.name);
      else {
        assert.deepEqual(
          [status, body.error, headers["retry-after"]],
          [503, "STORE_UNAVAILABLE", "1"],
          row.name,
        );
      }
    }
    assert.equal(inFlight.count, 0);
  });
});

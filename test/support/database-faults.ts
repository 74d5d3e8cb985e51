/** For tests in which the database fails: who says meanwhile that it leads, what callers are told, and what must be left. */

import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";
import { assertAllDone, Callers, type CallersOptions, type TestCluster } from "./cluster.ts";
import type { Scope } from "./node-cleanup.ts";
import type { NodeProcess } from "./process-node.ts";
import { Scrape } from "./prometheus-text.ts";
import { eventually } from "./wait.ts";

/**
 * Short enough that a fault of two leases takes a few seconds. Shorter, and a call of the lock has not the time in which a
 * former leader is evicted: its answer comes too late, and the term is given back.
 */
export const SHORT_LEASES = {
  LEADER__LEASE: "2s",
  LEADER__RENEW: "200ms",
  LEADER__MARGIN: "300ms",
  LEADER__RETRY: "100ms",
  NODE__HEARTBEAT: "200ms",
  NODE__DEAD_AFTER: "2s",
  WORKER__LEASE: "4s",
  WORKER__RENEW: "500ms",
};
export const LEASE_MS = 2_000;

/** With callers of all nodes, once some of their work is done. */
export async function underLoad(
  t: Scope,
  cluster: TestCluster,
  options: CallersOptions = {},
): Promise<Callers> {
  const callers = Callers.start(t, cluster, options);
  await callers.more();
  return callers;
}

export interface Refusal {
  readonly error: string;
  readonly message: string;
}

export interface Ready {
  readonly ready: boolean;
  readonly checks: Record<string, { readonly ok: boolean; readonly reason?: string }>;
}

/** Submits and reads are refused with a time to come back, the reason stands in /readyz, and no restart would help. */
export async function assertStoreAway(node: NodeProcess, job: string): Promise<void> {
  const asked = {
    submit: node.post("/jobs", { task: "work", payload: { ms: 0 } }),
    many: node.post("/jobs", [{ task: "work", payload: { ms: 0 } }]),
    call: node.post("/functions/work?timeout_ms=1000", { ms: 0 }),
    job: node.call(`/jobs/${job}`),
    result: node.call(`/jobs/${job}/result`),
    list: node.call("/admin/jobs"),
    queues: node.call("/queues"),
    leaders: node.call("/cluster/leaders"),
    cancel: node.call(`/jobs/${job}`, { method: "DELETE" }),
  };
  for (const [what, asking] of Object.entries(asked)) {
    const { status, headers, body } = await asking;
    assert.equal(status, 503, `${what}: ${JSON.stringify(body)}`);
    assert.ok(headers.get("retry-after"), `${what} has no Retry-After`);
    assert.equal((body as Refusal).error, "STORE_UNAVAILABLE", what);
    assert.match((body as Refusal).message, /^the database is not available: ./, what);
  }
  await assertNotReady(node);
}

/** Also for a database that is silent: nobody who asks about this node itself has to wait for it. */
export async function assertNotReady(node: NodeProcess): Promise<void> {
  const before = systemClock.monotonic();
  const readyz = await node.call("/readyz");
  const { ready, checks } = readyz.body as Ready;
  assert.deepEqual([readyz.status, ready, checks["store"]!.ok], [503, false, false]);
  assert.match(checks["store"]!.reason!, /the (database|store) is not available: ./);
  for (const path of ["/livez", "/health", "/role", "/cluster", "/cluster/nodes", "/status"]) {
    assert.equal((await node.call(path)).status, 200, path);
  }
  await Scrape.of(node.url);
  const tookMs = systemClock.monotonic() - before;
  assert.ok(tookMs < 4_000, `a look at a node took ${tookMs} ms`);
}

/** Until exactly one node leads and all of them say that they are ready. */
export async function recovered(cluster: TestCluster): Promise<{ name: string; epoch: number; ms: number }> {
  const before = systemClock.monotonic();
  const { name, epoch } = await cluster.leader();
  const ms = systemClock.monotonic() - before;
  await eventually("all nodes to be ready", async () => {
    const answers = await Promise.all([...cluster.nodes.values()].map((node) => node.call("/readyz")));
    return answers.every(({ status }) => status === 200);
  });
  return { name, epoch, ms };
}

/** All that was promised is done, once; every node is active and none of them has met an error that nobody handled. */
export async function audit(cluster: TestCluster, callers: Callers): Promise<void> {
  await assertAllDone(cluster, callers);
  await eventually("all nodes to be active", async () => {
    const [row] = await cluster.sql("SELECT count(*)::int AS n FROM baton.node WHERE status = 'active'");
    return row!["n"] === cluster.nodes.size;
  });
  for (const each of cluster.nodes.values()) assertCalm(each);
}

/** It runs, and said nothing of a promise or an exception that nobody caught. */
export function assertCalm(node: NodeProcess): void {
  assert.equal(node.child.exitCode ?? node.child.signalCode, null, `a node ended: ${node.stderr}`);
  assert.deepEqual(logged(node, /nobody was waiting|not caught|Internal|did not stop with their term/), []);
}

interface LogLine {
  readonly level: string;
  readonly time: string;
  readonly msg: string;
}

/** What it logged, as far as the text fits. */
export function logged(node: NodeProcess, text: RegExp): LogLine[] {
  const lines = node.stdout.split("\n").filter((line) => line.startsWith("{") && line.endsWith("}"));
  return lines.map((line) => JSON.parse(line) as LogLine).filter(({ msg }) => text.test(msg));
}

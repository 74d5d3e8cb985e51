/** Health that does not lie: a claim that hangs, and a database that stands still, seen through the probes. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Client } from "pg";
import { systemClock } from "../../../src/platform/clock.ts";
import { TestCluster } from "../../support/cluster.ts";
import { atEnd } from "../../support/node-cleanup.ts";
import type { NodeProcess } from "../../support/process-node.ts";
import { Scrape } from "../../support/prometheus-text.ts";
import { eventually } from "../../support/wait.ts";

interface Probe {
  readonly status: number;
  readonly body: {
    readonly code?: string;
    readonly reason?: string;
    readonly checks?: Record<string, { ok: boolean }>;
  };
  readonly tookMs: number;
}

async function probe(node: NodeProcess, path: string): Promise<Probe> {
  const before = systemClock.monotonic();
  const { status, body } = await node.call(path);
  return { status, body, tookMs: systemClock.monotonic() - before };
}

/** The first probe that answers so, and how long it took to get there. */
async function until(
  node: NodeProcess,
  path: string,
  status: number,
): Promise<Probe & { readonly afterMs: number }> {
  const before = systemClock.monotonic();
  return eventually(
    `${path} to answer ${status}`,
    async () => {
      const found = await probe(node, path);
      return found.status === status ? { ...found, afterMs: systemClock.monotonic() - before } : null;
    },
    40_000,
  );
}

describe("the probes of a node with a database", { timeout: 180_000 }, () => {
  it("tell a claim that hangs, and a database that stands still", async (t) => {
    const cluster = await TestCluster.open(t, { server: { durable: true } });
    const [node] = await cluster.startAll("ada");
    assert.ok(node);
    assert.equal((await until(node, "/workz", 200)).body.code, "working");

    await t.test(
      "a claim alone hangs: not working within seconds, alive and ready all the while",
      async (t) => {
        const client = new Client({ connectionString: cluster.url });
        await client.connect();
        atEnd(t, () => client.end());
        // Claims look at their lease, and nothing else does that happens here.
        await client.query("BEGIN");
        await client.query("LOCK TABLE baton.lease IN ACCESS EXCLUSIVE MODE");
        const { job_id } = await node.client.submit({ task: "work", payload: { ms: 0 } });
        const { body, afterMs } = await until(node, "/workz", 503);
        t.diagnostic(`not working after ${afterMs.toFixed(0)} ms: ${body.code}: ${body.reason}`);
        assert.ok(["claims_unanswered", "claims_failing"].includes(body.code!), body.code);
        assert.ok(afterMs < 15_000, `${afterMs}`);
        assert.equal((await probe(node, "/livez")).status, 200);
        assert.equal((await probe(node, "/readyz")).status, 200);
        assert.ok((await Scrape.of(node.url)).value("baton_worker_unanswered_seconds") >= 5);
        await client.query("ROLLBACK");
        await until(node, "/workz", 200);
        assert.equal((await node.jobWhen(job_id, ({ status }) => status === "completed")).failures, 0);
      },
    );

    await t.test(
      "the database stands still: not ready, alive, and metrics are answered all the same",
      async (t) => {
        await Scrape.of(node.url);
        cluster.server.pause();
        atEnd(t, async () => cluster.server.resume());
        const ready = await until(node, "/readyz", 503);
        t.diagnostic(`not ready after ${ready.afterMs.toFixed(0)} ms: ${JSON.stringify(ready.body.checks)}`);
        assert.equal(ready.body.checks!["store"]!.ok, false);
        assert.ok(ready.tookMs < 5_000, `${ready.tookMs}`);
        assert.equal((await probe(node, "/livez")).status, 200);
        const before = systemClock.monotonic();
        const scrape = await Scrape.of(node.url);
        t.diagnostic(`metrics within ${(systemClock.monotonic() - before).toFixed(0)} ms`);
        assert.ok(systemClock.monotonic() - before < 3_000);
        assert.ok(scrape.value("baton_backlog_age_seconds") >= 0);
        cluster.server.resume();
        await until(node, "/readyz", 200);
      },
    );
  });
});

/** Health that does not lie. A database that stands still: nightly/process/postgres/database-outage.test.ts. */

import assert from "node:assert/strict";
import { it } from "node:test";
import { Client } from "pg";
import { systemClock } from "../../../../src/platform/clock.ts";
import { TestCluster } from "../../../support/cluster.ts";
import { atEnd } from "../../../support/node-cleanup.ts";
import { Scrape } from "../../../support/prometheus-text.ts";
import { eventually } from "../../../support/wait.ts";

interface Probe {
  readonly status: number;
  readonly body: { readonly code?: string; readonly reason?: string };
}

it("a claim that hangs: not working within seconds, alive and ready all the while", async (t) => {
  const cluster = await TestCluster.open(t, { server: { durable: true } });
  const [node] = await cluster.startAll("ada");
  assert.ok(node);
  const probe = async (path: string): Promise<Probe> => node.call(path);
  const working = (status: number): Promise<Probe> =>
    eventually(`/workz to answer ${status}`, async () => {
      const found = await probe("/workz");
      return found.status === status && found;
    });
  assert.equal((await working(200)).body.code, "working");
  const client = new Client({ connectionString: cluster.url });
  await client.connect();
  atEnd(t, () => client.end());
  await node.does({ task: "work", payload: {} });
  // Claims count the kinds, and nothing else does that happens here.
  await client.query("BEGIN");
  await client.query("LOCK TABLE baton.kind IN ACCESS EXCLUSIVE MODE");
  const { job_id } = await node.client.submit({ task: "work", payload: {} });
  const from = systemClock.monotonic();
  const { body } = await working(503);
  const afterMs = systemClock.monotonic() - from;
  t.diagnostic(`not working after ${afterMs.toFixed(0)} ms: ${body.code}: ${body.reason}`);
  assert.ok(["claims_unanswered", "claims_failing"].includes(body.code!), body.code);
  assert.ok(afterMs < 15_000, `${afterMs} ms: ${JSON.stringify(body)}`);
  assert.equal((await probe("/livez")).status, 200);
  assert.equal((await probe("/readyz")).status, 200);
  assert.ok((await Scrape.of(node.url)).value("baton_worker_unanswered_seconds") >= 5);
  await client.query("ROLLBACK");
  await working(200);
  assert.equal((await node.jobWhen(job_id, ({ status }) => status === "completed")).failures, 0);
});

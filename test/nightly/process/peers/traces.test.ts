/** One job, one trace: submitted at one node, run at another, with an operator's tracer in each of the two processes. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import type { MadeSpan } from "../../../support/memory-tracer.ts";
import { birthplace, PeerCluster, QUICK_PEERS } from "../../../support/peer-cluster.ts";
import { eventually } from "../../../support/wait.ts";

const TRACER = new URL("../../../support/trace-to-file.ts", import.meta.url).href;
const NAMES = ["node-a", "node-b"];

it("the spans of a job are of one trace, through another node, and when it is tried again", async (t) => {
  const cluster = await PeerCluster.open(t, { names: NAMES, settings: QUICK_PEERS });
  const file = (name: string): string => join(cluster.directory, `${name}.spans`);
  for (const name of NAMES) {
    const environment = { NODE_OPTIONS: `--import ${TRACER}`, TRACE_FILE: file(name) };
    await cluster.start(name, { environment });
  }
  await cluster.gathered();
  const spansOf = async (name: string): Promise<MadeSpan[]> => {
    const text = await readFile(file(name), "utf8").catch(() => "");
    return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as MadeSpan]));
  };
  /** Submitted at node-a, and stored by the other. */
  const passedOn = async (traceparent: string, payload: object): Promise<string> => {
    for (let tries = 0; tries < 10; tries++) {
      const answer = await fetch(`${cluster.url("node-a")}/jobs`, {
        method: "POST",
        headers: { "content-type": "application/json", traceparent, tracestate: "vendor=value" },
        body: JSON.stringify({ task: "work", payload }),
      });
      const { job_id: id } = (await answer.json()) as { job_id: string };
      if (birthplace(id) === "node-b") return id;
    }
    throw new Error("nothing was passed on");
  };

  const cases = [
    ["passed on and run", { ms: 0 }, 1],
    ["passed on, failed and tried again", { ms: 0, flaky: true }, 2],
  ] as const;
  for (const [what, payload, runs] of cases) {
    await t.test(what, async () => {
      const traceId = `${runs}`.repeat(32);
      const caller = "00f067aa0ba902b7";
      const id = await passedOn(`00-${traceId}-${caller}-01`, payload);
      await cluster.node("node-b").jobWhen(id, ({ status }) => status === "completed");
      const there = await eventually("the last span", async () => {
        const spans = (await spansOf("node-b")).filter(
          (span) => span.attributes["messaging.message.id"] === id,
        );
        return spans.filter(({ name }) => name === "baton.settle").length === runs ? spans : null;
      });
      assert.deepEqual(new Set(there.map((span) => span.traceId)), new Set([traceId]));
      const names = there.map(({ name }) => name);
      assert.equal(names.filter((name) => name === "baton.submit").length, 1);
      assert.equal(names.filter((name) => name === "baton.run").length, runs);
      assert.equal(names.filter((name) => name === "baton.claim").length, runs);
      const submitted = there.find(({ name }) => name === "baton.submit")!;
      const hop = (await spansOf("node-a")).find(({ spanId }) => spanId === submitted.parentSpanId)!;
      assert.deepEqual(
        [hop.name, hop.kind, hop.traceId, hop.parentSpanId],
        ["baton.proxy", "client", traceId, caller],
      );
      assert.equal(hop.attributes["baton.target"], "node-b");
      assert.equal(hop.attributes["http.route"], "/jobs");
      assert.equal(submitted.parentIsRemote, true);
      for (const run of there.filter(({ name }) => name === "baton.run"))
        assert.equal(run.parentSpanId, submitted.spanId);
      const { traceparent } = await cluster.node("node-b").client.job(id);
      assert.equal(traceparent, `00-${traceId}-${submitted.spanId}-01`);
    });
  }
});

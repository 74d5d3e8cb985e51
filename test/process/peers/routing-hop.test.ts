/** What passes through a hop: large bodies and many followers. Cut replies: test/node/http/forwarding, test/contract/transport/stream. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { birthplace, nodeMapFile, PeerCluster, QUICK_PEERS } from "../../support/peer-cluster.ts";
import { column } from "../../support/columns.ts";
import { eventually } from "../../support/wait.ts";

const NAMES = ["node", "node-a", "node-a-b"];

describe("through a hop", { timeout: 120_000 }, () => {
  const suite = suiteScope();
  let cluster: PeerCluster;

  before(async () => {
    // On a busy machine a node that is silent for a second is not dead, and who looks dead is passed over.
    const settings = { ...QUICK_PEERS, LEADER__LEASE: "20s", NODE__DEAD_AFTER: "20s" };
    const file = nodeMapFile({ internal_request_timeout_seconds: 30 });
    cluster = await PeerCluster.start(suite, { names: NAMES, file, settings });
  });

  it("a large body arrives as it was sent, and one that is too large is refused where it was sent", async () => {
    const filling = "ü€\u0000\"'".repeat(60_000);
    const owners = new Set<string>();
    for (let i = 0; i < 3; i++) {
      const payload = { letter: "x", length: 1, filling };
      const { job_id } = await cluster.node("node").client.submit({ task: "blob", payload });
      owners.add(birthplace(job_id));
      const job = await cluster.node("node-a").client.job(job_id);
      assert.equal((job.payload as { filling: string }).filling, filling);
    }
    assert.equal(owners.size, 3);
    const { status, body } = await cluster.node("node").post("/jobs", {
      task: "blob",
      payload: { letter: "x", length: 1, filling: "x".repeat(1_048_576) },
    });
    assert.deepEqual([status, (body as { error: string }).error], [413, "BODY_TOO_LARGE"]);
  });

  it("a key is one job at whichever node it is repeated, and another payload is refused there", async () => {
    const payload = { letter: "x", length: 1 };
    const request = { task: "blob", payload, idempotency_key: "one" };
    const answers = [];
    for (const name of NAMES) answers.push(await cluster.node(name).client.submit(request));
    assert.deepEqual(column(answers, "existed"), [false, true, true]);
    assert.deepEqual(column(answers, "job_id"), Array(3).fill(answers[0]!.job_id));
    for (const name of NAMES) {
      const other = { ...request, payload: { ...payload, length: 2 } };
      const { status, body } = await cluster.node(name).post("/jobs", other);
      const { error, job_id } = body as { error: string; job_id: string };
      assert.deepEqual([status, error, job_id], [409, "IDEMPOTENCY_CONFLICT", answers[0]!.job_id]);
    }
  });

  it("200 followers of a log see every line live, while others are answered", async (t) => {
    const id = await cluster.jobAt("node-a-b", { task: "hold" });
    await cluster.node("node-a-b").processing(id);
    const through = cluster.node("node");
    t.after(() => through.client.cancel(id).catch(() => {})); // ends the streams of a failed test
    let begun = 0;
    const follow = async (): Promise<string> => {
      const answer = await fetch(`${through.url}/jobs/${id}/logs`, {
        headers: { accept: "text/event-stream" },
      });
      assert.equal(answer.status, 200, answer.status === 200 ? "" : await answer.text());
      assert.equal(answer.headers.get("x-baton-via"), "node");
      let text = "";
      let told = false;
      for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
        text += chunk;
        if (!told && text.includes("holding")) {
          told = true;
          begun++;
        }
      }
      return text;
    };
    const startedAt = systemClock.monotonic();
    const following = Promise.all(Array.from({ length: 200 }, follow));
    // A follower that fails ends the wait.
    const served = eventually("200 followers to see the first line", () => begun === 200);
    await Promise.race([served, following]);
    t.diagnostic(`200 followers were served within ${Math.round(systemClock.monotonic() - startedAt)} ms`);
    assert.equal((await through.client.job(id)).status, "processing", "others are answered while all follow");

    await through.client.cancel(id);
    for (const text of await following) {
      const events = [...text.matchAll(/^event: (\w+)$/gm)].map(([, event]) => event);
      assert.deepEqual(events, ["log", "log", "end"], text);
      assert.match(text, /holding[^]*told: cancel[^]*cancelled/);
    }
    await eventually("nobody to be left", async () => {
      const { load } = await through.client.cluster.node("node");
      return load.connections < 50;
    });
  });
});

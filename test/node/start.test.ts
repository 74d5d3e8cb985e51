import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { describe, it } from "node:test";
import { loadSettings } from "../../src/config/load-settings.ts";
import { createNode } from "../../src/node/baton-node.ts";
import { silentLog } from "../../src/platform/log.ts";
import { atEnd } from "../support/node-cleanup.ts";

function settings(more: Readonly<Record<string, string>> = {}) {
  const given = { BATON_STORE: "memory", BATON_NAME: "here", BATON_HTTP__PORT: "0", ...more };
  return loadSettings({ environment: given, cwd: tmpdir() }).settings;
}

/** The body is read, because a connection with an unread answer holds up the stop of its server. */
async function statusOf(url: string): Promise<number> {
  const answer = await fetch(url);
  await answer.text();
  return answer.status;
}

describe("a node that starts", () => {
  it("listens before its elections begin, and has not formed then", async (t) => {
    const seen: (readonly [url: string, forming: string | null])[] = [];
    const log = {
      ...silentLog,
      info: (_fields: object, message: string) => {
        if (message === "leading") seen.push([node.url, node.services.health.forming]);
      },
    };
    const node = await createNode({ settings: settings(), log });
    atEnd(t, () => node.stop({ hurry: true }));
    await node.start();
    const [first] = seen;
    assert.deepEqual(first, [node.url, "it is being started"]);
    assert.equal(node.services.health.forming, null);
  });

  it("is alive, not ready, and refuses changes with 503 until the cluster has formed", async (t) => {
    const loaded = settings();
    const cluster = { ...loaded.cluster, minimumNodes: 2 };
    const node = await createNode({ settings: { ...loaded, cluster } });
    atEnd(t, () => node.stop({ hurry: true }));
    await node.start();
    assert.equal(await statusOf(`${node.url}/livez`), 200);
    assert.equal(await statusOf(`${node.url}/readyz`), 503);
    const refused = await fetch(`${node.url}/jobs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ task: "echo" }),
    });
    assert.equal(refused.status, 503);
    assert.equal(refused.headers.get("retry-after"), "1");
    assert.equal(((await refused.json()) as { error: string }).error, "CLUSTER_FORMING");
  });

  it("builds everything anew when it is started again", async (t) => {
    const node = await createNode({ settings: settings(), http: false });
    assert.throws(() => node.services, { code: "STOPPED" });
    assert.deepEqual(node.runningJobs(), []);
    atEnd(t, () => node.stop({ hurry: true }));
    await node.start();
    const first = node.services.identity.incarnation;
    await node.stop();
    await node.start();
    assert.notEqual(node.services.identity.incarnation, first);
    assert.equal((await node.services.health.ready()).ready, true);
  });

  it("stops what it has started when a later service fails", async (t) => {
    const first = await createNode({ settings: settings() });
    atEnd(t, () => first.stop({ hurry: true }));
    await first.start();
    const port = new URL(first.url).port;
    const second = await createNode({ settings: settings({ BATON_HTTP__PORT: port }) });
    await assert.rejects(second.start(), { code: "BAD_CONFIG" });
    await first.stop();
    await second.start();
    assert.equal(await statusOf(`${second.url}/readyz`), 200);
    await second.stop({ hurry: true });
  });
});

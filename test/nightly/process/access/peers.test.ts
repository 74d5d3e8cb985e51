/** Nodes with a store each: the same credentials count everywhere. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { listedFile, TEST_SECRET } from "../../../support/host-cluster.ts";
import { PeerCluster, QUICK_PEERS } from "../../../support/peer-cluster.ts";
import { eventually } from "../../../support/wait.ts";
import { ask } from "../../../process/access/callers.ts";

/** On a busy machine a node that is silent for a second is not dead. */
const LONG = { LEADER__LEASE: "20s", NODE__DEAD_AFTER: "20s" };
const SETTINGS = { ...QUICK_PEERS, ...LONG, HTTP__HOST: "0.0.0.0", SECRET: TEST_SECRET };

it("all nodes make the same first token, know what any of them makes, and forget what any of them revokes", async (t) => {
  const cluster = await PeerCluster.open(t, {
    file: listedFile,
    settings: { ...SETTINGS, ACCESS__TOKEN: "" },
  });
  const nodes = await Promise.all(cluster.names.map((name) => cluster.start(name)));
  const urls = nodes.map(({ url }) => url);
  const files = cluster.names.map((name) => join(cluster.data(name), "admin-token"));
  await eventually("a token for each owner", async () => files.every((file) => existsSync(file)), 30_000);
  const [admin, ...others] = files.map((file) => readFileSync(file, "utf8").trim());
  assert.deepEqual(others, [admin, admin]);
  for (const url of urls) assert.equal((await ask(url, "/tokens", { token: admin! })).status, 200);

  const made = await ask(urls[0]!, "/tokens", {
    method: "POST",
    token: admin!,
    body: { name: "ci", permission: "submit" },
  });
  const token = made.body["token"] as string;
  for (const url of urls) assert.equal((await ask(url, "/status", { token })).status, 200);
  const ann = { name: "ann", password: "one password for all", permission: "read" };
  assert.equal((await ask(urls[1]!, "/users", { method: "POST", token: admin!, body: ann })).status, 201);
  const login = await ask(urls[2]!, "/session", {
    method: "POST",
    body: { user: "ann", password: ann.password },
  });
  const cookie = login.headers.get("set-cookie")!.split(";", 1)[0]!;
  for (const url of urls)
    assert.equal((await ask(url, "/session", { cookie })).body["principal"], "user:ann");

  // One is away while it is revoked.
  await cluster.kill("node-c");
  const revoked = await ask(urls[1]!, `/tokens/${made.body["id"] as string}`, {
    method: "DELETE",
    token: admin!,
  });
  assert.equal(revoked.status, 200);
  for (const url of urls.slice(0, 2)) assert.equal((await ask(url, "/status", { token })).status, 401);
  const back = await cluster.start("node-c");
  await eventually(
    "the one that was away to hear of it",
    async () => (await ask(back.url, "/status", { token })).status === 401,
  );
  assert.equal((await ask(back.url, "/session", { cookie })).body["principal"], "user:ann");
  for (const node of [...nodes, back])
    for (const secret of [admin!, token, ann.password, TEST_SECRET])
      assert.ok(!node.stdout.includes(secret) && !node.stderr.includes(secret), "nothing of it is logged");
});

it("a stream that comes through another node ends with its token", async (t) => {
  const ADMIN = "an-admin-token-of-this-test-0123456789";
  const cluster = await PeerCluster.open(t, {
    file: listedFile,
    settings: { ...SETTINGS, ACCESS__TOKEN: ADMIN },
  });
  const nodes = await Promise.all(cluster.names.map((name) => cluster.start(name)));
  const urls = nodes.map(({ url }) => url);
  const make = async (name: string, permission: string) => {
    const body = { name, permission };
    const { body: made } = await ask(urls[0]!, "/tokens", { method: "POST", token: ADMIN, body });
    return made as { id: string; token: string };
  };
  await eventually("a cluster", async () => (await ask(urls[0]!, "/readyz")).status === 200, 30_000);
  const reader = await make("reader", "read");

  // A job of one node, followed at another one.
  const hold = { task: "work", payload: { ms: 60_000 } };
  const { body: job } = await ask(urls[0]!, "/jobs", { method: "POST", token: ADMIN, body: hold });
  const id = job["job_id"] as string;
  const other = urls.find((_, at) => !id.startsWith(cluster.names[at]!))!;
  const stream = await fetch(`${other}/jobs/${id}/logs`, {
    headers: { accept: "text/event-stream", authorization: `Bearer ${reader.token}` },
    signal: AbortSignal.timeout(30_000),
  });
  assert.equal(stream.status, 200);
  assert.notEqual(stream.headers.get("x-baton-via"), null, "it comes through another node");
  const over = (async () => {
    for await (const _ of stream.body!);
  })();
  assert.equal((await ask(urls[0]!, `/tokens/${reader.id}`, { method: "DELETE", token: ADMIN })).status, 200);
  await over;
  assert.equal((await ask(other, `/jobs/${id}`, { token: reader.token })).status, 401);
});

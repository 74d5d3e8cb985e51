/** Two nodes on one database: what is made or revoked at one counts at the other. */

import assert from "node:assert/strict";
import { it } from "node:test";
import { TestCluster } from "../../support/cluster.ts";
import { eventually } from "../../support/wait.ts";
import { ask, baton } from "./callers.ts";

const EVERYWHERE = { HTTP__HOST: "0.0.0.0", ACCESS__TOKEN: "" };
const SHOWN = /shown only this once: (baton_[A-Za-z0-9_-]{43})/;

it("nodes that start together show one admin token, and share all credentials", async (t) => {
  const cluster = await TestCluster.open(t, { settings: EVERYWHERE });
  const nodes = await Promise.all([cluster.start("a"), cluster.start("b")]);
  const [a, b] = nodes.map(({ url }) => url) as [string, string];
  const tokens = (): string[] => nodes.flatMap(({ stderr }) => SHOWN.exec(stderr)?.[1] ?? []);
  await eventually("the first token", async () => (tokens().length > 0 ? true : null));
  const shown = tokens();
  assert.equal(shown.length, 1, nodes.map(({ stderr }) => stderr).join("\n"));
  const admin = shown[0]!;
  for (const node of nodes) assert.ok(!node.stdout.includes(admin), "it is not in the log");
  for (const url of [a, b]) {
    assert.equal((await ask(url, "/tokens", { token: admin })).status, 200);
    assert.equal((await ask(url, "/tokens")).status, 401);
  }

  // At once, also where nobody has heard of it yet.
  for (let n = 0; n < 5; n++) {
    const body = { name: `t${n}`, permission: "read" };
    const { body: made } = await ask(n % 2 ? a : b, "/tokens", { method: "POST", token: admin, body });
    const { status } = await ask(n % 2 ? b : a, "/status", { token: made["token"] as string });
    assert.equal(status, 200, `token ${n}`);
  }
  const body = { name: "ci", permission: "submit" };
  const { body: made } = await ask(a, "/tokens", { method: "POST", token: admin, body });
  const token = made["token"] as string;
  assert.equal((await ask(b, "/jobs", { method: "POST", token, body: { task: "work" } })).status, 200);
  assert.equal((await ask(b, "/queues/x/pause", { method: "POST", token })).status, 403);

  const revokedAt = performance.now();
  assert.equal(
    (await ask(a, `/tokens/${made["id"] as string}`, { method: "DELETE", token: admin })).status,
    200,
  );
  assert.equal((await ask(a, "/status", { token })).status, 401, "at once where it was revoked");
  await eventually("the other node to know", async () =>
    (await ask(b, "/status", { token })).status === 401 ? true : null,
  );
  const tookMs = performance.now() - revokedAt;
  assert.ok(tookMs < 5_000, `${Math.round(tookMs)} ms`);

  const ann = { name: "ann", password: "one password for all", permission: "operate" };
  assert.equal((await ask(a, "/users", { method: "POST", token: admin, body: ann })).status, 201);
  const login = await ask(b, "/session", { method: "POST", body: { user: "ann", password: ann.password } });
  assert.equal(login.status, 200, login.text);
  const cookie = login.headers.get("set-cookie")!.split(";", 1)[0]!;
  assert.equal((await ask(a, "/session", { cookie })).body["principal"], "user:ann");
  assert.equal((await ask(a, "/queues/mail/pause", { method: "POST", cookie })).status, 200);
  assert.equal((await ask(a, "/session", { method: "DELETE", cookie })).status, 200);
  await eventually("the session to end at the other node", async () =>
    (await ask(b, "/session", { cookie })).status === 401 ? true : null,
  );

  const direct = await baton(["token", "create", "--name", "direct", "--permission", "admin"], {
    BATON_URL: a,
  });
  assert.equal(direct.code, 4, "without a token nobody makes one");
  const create = ["token", "create", "--name", "direct", "--permission", "admin", "--store", cluster.url];
  const past = await baton(create);
  assert.equal(past.code, 0, past.err);
  assert.equal((await ask(b, "/tokens", { token: past.out.trim() })).status, 200);

  const kept = JSON.stringify(await cluster.sql("SELECT * FROM baton.credential"));
  for (const secret of [admin, token, ann.password, cookie.split("=")[1]!, past.out.trim()])
    assert.ok(!kept.includes(secret), "only hashes are kept");
  const { body: journal } = await ask(a, "/cluster/journal?kind=audit&limit=100", { token: admin });
  const entries = journal["entries"] as { actor: string; subject: string; detail: { operation: string } }[];
  const told = entries.map(({ actor, subject, detail }) => `${actor} ${detail.operation} ${subject}`);
  assert.ok(told.includes("user:ann pause_queue mail"), told.join("\n"));
  assert.ok(
    told.some((each) => each.startsWith("token:first-admin revoke_token ")),
    told.join("\n"),
  );
});

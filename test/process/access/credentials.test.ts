/** Nodes that others can reach, with real processes and the real command line: what is made or revoked at one of them counts at all. */

import assert from "node:assert/strict";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { TestCluster } from "../../support/cluster.ts";
import { AgentProcess } from "../../support/process-agent.ts";
import { dataDirectory, NodeProcess } from "../../support/process-node.ts";
import { eventually } from "../../support/wait.ts";
import { ask } from "./callers.ts";
import { batonCommand } from "../../support/process.ts";
import { column } from "../../support/columns.ts";

const EVERYWHERE = { HTTP__HOST: "0.0.0.0", ACCESS__TOKEN: "" };

describe("a node that listens beyond its machine", () => {
  it("makes an admin token at its first start, with which the rest is made by command", async (t) => {
    const data = await dataDirectory(t);
    const node = await NodeProcess.start(t, { data, settings: EVERYWHERE });
    const { url } = node;
    const file = join(data, "admin-token");
    const admin = readFileSync(file, "utf8").trim();
    assert.equal(statSync(file).mode & 0o777, 0o600);
    await eventually("what to do about it", async () =>
      node.stderr.includes(`export BATON_TOKEN_FILE=${file}`),
    );
    assert.equal((await ask(url, "/status")).status, 401);
    assert.equal((await ask(url, "/livez")).status, 200);

    const refused = await batonCommand(["status", "--url", url]);
    assert.equal(refused.code, 4);
    assert.match(refused.err, /UNAUTHENTICATED/);
    assert.match(refused.err, /hint: .*BATON_TOKEN_FILE/);

    const asAdmin = { BATON_TOKEN_FILE: file };
    const made = await batonCommand(
      ["token", "create", "--name", "ci", "--permission", "read", "--url", url],
      asAdmin,
    );
    assert.equal(made.code, 0, made.err);
    assert.match(
      made.out,
      /^baton_[A-Za-z0-9_-]{43}\n$/,
      "only the token, to be put into a file or a variable",
    );
    const token = made.out.trim();
    const submitted = await batonCommand(["submit", "work", "{}", "--url", url, "--token", token]);
    assert.equal(submitted.code, 4);
    assert.match(submitted.err, /needs the permission submit, and token:ci has read/);
    assert.match(submitted.err, /hint: .*baton token create --name NAME --permission submit/);

    const password = "a password for ann\n";
    const added = await batonCommand(
      ["user", "add", "ann", "--permission", "operate", "--url", url],
      asAdmin,
      password,
    );
    assert.equal(added.code, 0, added.err);
    const body = { user: "ann", password: password.trim() };
    assert.equal((await ask(url, "/session", { method: "POST", body })).status, 200);

    const revoked = await batonCommand(["token", "revoke", "ci", "--url", url], asAdmin);
    assert.equal(revoked.code, 0, revoked.err);
    assert.equal((await ask(url, "/status", { token })).status, 401);
    const listed = await batonCommand(["token", "list", "--url", url, "-o", "json"], asAdmin);
    assert.deepEqual(column((JSON.parse(listed.out) as { tokens: { name: string }[] }).tokens, "name"), [
      "first-admin",
    ]);

    const inUse = await batonCommand([
      "token",
      "create",
      "--name",
      "x",
      "--permission",
      "admin",
      "--data",
      data,
    ]);
    assert.equal(inUse.code, 1);
    assert.match(inUse.err, /in use by another process/);

    await node.terminate();
    for (const text of [node.stdout, node.stderr, readFileSync(join(data, "baton.db"), "latin1")])
      for (const secret of [admin, token, password.trim()]) assert.ok(!text.includes(secret), secret);

    const rescued = await batonCommand([
      "token",
      "create",
      "--name",
      "rescue",
      "--permission",
      "admin",
      "--data",
      data,
    ]);
    assert.equal(rescued.code, 0, rescued.err);
    const again = await NodeProcess.start(t, { data, settings: EVERYWHERE });
    assert.equal((await ask(again.url, "/tokens", { token: rescued.out.trim() })).status, 200);
    assert.equal(
      (await ask(again.url, "/tokens", { token: admin })).status,
      200,
      "the first one still counts",
    );
    assert.equal((await ask(again.url, "/status", { token })).status, 401, "what was revoked stays revoked");
    assert.ok(!again.stderr.includes("was made"), again.stderr);
  });

  it("serves agents that show a token with operate, in TypeScript and in Python", async (t) => {
    const data = await dataDirectory(t);
    const node = await NodeProcess.start(t, {
      data,
      settings: { HTTP__HOST: "0.0.0.0", WORKER__CONCURRENCY: "0" },
    });
    const { url } = node;
    const made = await node.client.access.createToken({ name: "agents", permission: "operate" });
    const BATON_TOKEN = made.token;
    const agent = AgentProcess.spawn(t, [url], { environment: { BATON_TOKEN } });
    const { job_id: first } = await node.client.submit({ task: "work", payload: { n: 1 } });
    const done = await node.jobWhen(first, ({ status }) => status === "completed");
    assert.match(done.worker!, /agent/, agent.output);
    const snake = AgentProcess.python(t, [url], { environment: { BATON_TOKEN } });
    const counting = await node.post("/v1/jobs", { task: "word-count", payload: { text: "one two" } });
    const { job_id: second } = counting.body as { job_id: string };
    await node.jobWhen(second, ({ status }) => status === "completed");
    for (const output of [agent.output, snake.output]) assert.ok(!output.includes(BATON_TOKEN));
    const stranger = AgentProcess.spawn(t, [url], { name: "stranger", environment: {} });
    await stranger.told(/gives no leases|UNAUTHENTICATED|401/);
  });
});

describe("access.token", () => {
  it("is a credential from the first start on", async (t) => {
    const token = "automation-knows-this-before-the-start";
    const data = await dataDirectory(t);
    const file = join(data, "token");
    writeFileSync(file, `${token}\n`, { mode: 0o600 });
    const settings = { HTTP__HOST: "0.0.0.0", ACCESS__TOKEN: "", ACCESS__TOKEN_FILE: file };
    const node = await NodeProcess.start(t, { data, settings });
    assert.equal((await ask(node.url, "/tokens", { token })).status, 200);
    assert.throws(() => statSync(join(data, "admin-token")), "no other one is made");
    assert.ok(!node.stdout.includes(token) && !node.stderr.includes(token));
  });

  it("is refused in a file that everybody can read", async (t) => {
    const data = await dataDirectory(t);
    const file = join(data, "token");
    writeFileSync(file, "long-enough-and-otherwise-fine-0123456789\n");
    chmodSync(file, 0o644);
    const settings = { HTTP__HOST: "0.0.0.0", ACCESS__TOKEN: "", ACCESS__TOKEN_FILE: file };
    const node = NodeProcess.spawn(t, { data, settings });
    assert.equal((await node.exited).code, 78, node.stderr);
    assert.match(node.stderr, /can be read by every user; type: chmod 600/);
  });
});

const SHOWN = /shown only this once: (baton_[A-Za-z0-9_-]{43})/;

it("nodes that start together show one admin token, and share what is made beside them", async (t) => {
  const cluster = await TestCluster.open(t, { settings: EVERYWHERE });
  const nodes = await Promise.all([cluster.start("a"), cluster.start("b")]);
  const [a, b] = nodes.map(({ url }) => url) as [string, string];
  const tokens = (): string[] => nodes.flatMap(({ stderr }) => SHOWN.exec(stderr)?.[1] ?? []);
  await eventually("the first token", async () => tokens().length > 0);
  const shown = tokens();
  assert.equal(shown.length, 1, nodes.map(({ stderr }) => stderr).join("\n"));
  const admin = shown[0]!;
  for (const node of nodes) assert.ok(!node.stdout.includes(admin), "it is not in the log");
  for (const url of [a, b]) {
    assert.equal((await ask(url, "/tokens", { token: admin })).status, 200);
    assert.equal((await ask(url, "/tokens")).status, 401);
  }

  const direct = await batonCommand(["token", "create", "--name", "direct", "--permission", "admin"], {
    BATON_URL: a,
  });
  assert.equal(direct.code, 4, "without a token nobody makes one");
  const create = ["token", "create", "--name", "direct", "--permission", "admin", "--store", cluster.url];
  const past = await batonCommand(create);
  assert.equal(past.code, 0, past.err);
  assert.equal((await ask(b, "/tokens", { token: past.out.trim() })).status, 200);

  assert.deepEqual(tokens(), [admin], "no second one was shown later");
  const kept = JSON.stringify(await cluster.sql("SELECT * FROM baton.credential"));
  for (const secret of [admin, past.out.trim()]) assert.ok(!kept.includes(secret), "only hashes are kept");
});

/** Misspelt names of tasks, queues and schedules, as every way to a node refuses them. */

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { createClient } from "../../../../src/client/create-client.ts";
import { defineTask } from "../../../../src/jobs/tasks/task.ts";
import { nodeHere } from "../../../support/node-here.ts";
import { runCli } from "../../../unit/cli/run-cli.ts";

const mail = { name: "send-mail", queue: "mail", run: () => "sent" };
const MEANT = /"send-mial" so far; did you mean send-mail\?; start one that has it, or give /;

async function open(t: TestContext) {
  const node = await nodeHere(t, { http: true, tasks: [mail] });
  const cli = (line: string) => runCli(`${line} --url ${node.url}`);
  const count = async () => (await node.services.jobs.list({ limit: 10 })).jobs.length;
  return { node, cli, count };
}

describe("a misspelt task", () => {
  it("is refused over HTTP, by the library, the client and the command line alike", async (t) => {
    const { node, cli, count } = await open(t);
    const refused = { code: "UNKNOWN_TASK", message: MEANT, status: 400 };
    const post = (path: string, body: unknown) =>
      fetch(node.url + path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const answer = await post("/jobs", [{ task: "send-mail" }, { task: "send-mial" }, { task: "qqq" }]);
    const body = (await answer.json()) as { error: string; issues: { field: string }[] };
    assert.deepEqual([answer.status, body.error], [400, "UNKNOWN_TASK"]);
    assert.deepEqual(
      body.issues.map(({ field }) => field),
      ["[1].task", "[2].task"],
    );
    assert.equal((await post("/v1/jobs", { task: "send-mial", allow_unknown: false })).status, 400);
    await assert.rejects(node.submit("send-mial", null), refused);
    await using client = createClient({ urls: [node.url] });
    await assert.rejects(client.submit("send-mial", null), refused);
    const { code, err } = await cli("submit send-mial");
    assert.equal(code, 4, err);
    assert.match(err, /did you mean send-mail\?; start one that has it, or give --allow-unknown \(UNK/);
    assert.equal(await count(), 0);
  });

  it("is taken where it is said to be new", async (t) => {
    const { node, cli, count } = await open(t);
    await node.submit("next-1", null, { allowUnknown: true });
    // A task of the program is not misspelt.
    await node.submit(defineTask({ name: "next-2", run: () => 1 }), undefined);
    await using client = createClient({ urls: [node.url] });
    await client.submit("next-3", null, { allowUnknown: true });
    assert.equal((await cli("submit next-4 --allow-unknown")).code, 0);
    assert.equal(await count(), 4);
  });

  it("is not waited for by a call", async (t) => {
    const { cli, count } = await open(t);
    const { code, err } = await cli("call send-mial");
    assert.equal(code, 4);
    assert.match(err, /did you mean send-mail\?; start one that has it \(UNKNOWN_TASK\)/);
    assert.equal(await count(), 0);
  });

  it("is refused in a schedule, which goes on with the task that it has", async (t) => {
    const { cli } = await open(t);
    const { code, err } = await cli("schedules add nightly send-mial --every 1h");
    assert.equal(code, 4);
    assert.match(err, /did you mean send-mail\?/);
    assert.equal((await cli("schedules add nightly next --every 1h --allow-unknown")).code, 0);
    assert.equal((await cli("schedules add nightly next --every 2h")).code, 0);
    assert.equal((await cli("schedules trigger nightly")).code, 0);
  });
});

it("a misspelt queue is not paused, unless it is said to be new", async (t) => {
  const { node, cli } = await open(t);
  assert.equal((await cli("queues pause first")).code, 0, "where there is none yet, any may come");
  await node.submit("send-mail", null);
  for (const action of ["pause", "resume"]) {
    const { code, err } = await cli(`queues ${action} mial`);
    assert.equal(code, 3);
    assert.match(err, /there is no queue "mial"; did you mean mail\?; .* give --allow-unknown/);
  }
  assert.equal((await cli("queues pause mail")).code, 0);
  assert.equal((await cli("queues pause later --allow-unknown")).code, 0);
  await using client = createClient({ urls: [node.url] });
  await client.queues.pause("much-later", { allowUnknown: true });
  await assert.rejects(client.queues.pause("mial"), { code: "NOT_FOUND" });
});

it("a misspelt schedule is answered with the nearest name", async (t) => {
  const { cli } = await open(t);
  await cli("schedules add greeting send-mail --every 1h");
  for (const action of ["show", "pause", "trigger", "remove --yes", "history"]) {
    const { code, err } = await cli(`schedules ${action} greting`);
    assert.equal(code, 3);
    assert.match(err, /there is no schedule "greting"; did you mean greeting\?/);
  }
});

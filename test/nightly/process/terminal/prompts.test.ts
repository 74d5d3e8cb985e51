/** Questions and bars on a real terminal, against a real node. Completion in a real shell: test/unit/cli/completion. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, describe, it } from "node:test";
import { suiteScope } from "../../../support/node-cleanup.ts";
import { dataDirectory, NodeProcess } from "../../../support/process-node.ts";
import { BIN, COMPILED } from "../../../support/process.ts";
import { NO_PTY, Pty } from "../../../support/pty.ts";
import { eventually } from "../../../support/wait.ts";

describe("the command line on a terminal", { skip: NO_PTY }, () => {
  const suite = suiteScope();
  let node: NodeProcess;
  let directory: string;

  before(async () => {
    directory = await dataDirectory(suite);
    node = await NodeProcess.start(suite, { data: await dataDirectory(suite), name: "solo" });
  });

  function baton(t: Parameters<typeof Pty.open>[0], ...args: string[]): Pty {
    const environment = { NODE_COMPILE_CACHE: COMPILED, BATON_URL: node.url };
    return Pty.open(t, [process.execPath, BIN, ...args], { columns: 120, environment, cwd: directory });
  }

  it("asks before a node is drained, and changes nothing without a yes", async (t) => {
    const refused = baton(t, "node", "drain", "solo");
    await refused.shows(/Drain solo\? It finishes 0 running jobs and takes no more\. No other node works/);
    // No is the answer of Enter alone.
    refused.type("x\r");
    assert.equal((await refused.ended).code, 1);
    assert.match(refused.screen.text, /nothing was changed/);
    assert.equal((await node.client.cluster.node("solo")).status, "active");
  });

  it("asks twice for a password and shows nothing of it, neither on the screen nor in ps", async (t) => {
    const password = "correct horse bättery €";
    const login = async (user: string, given: string): Promise<number> => {
      const headers = { "content-type": "application/json" };
      const body = JSON.stringify({ user, password: given });
      return (await fetch(`${node.url}/session`, { method: "POST", headers, body })).status;
    };
    const adding = baton(t, "user", "create", "ann", "--permission", "read");
    await adding.shows(/password of ann:/);
    const arguments_ = readFileSync(`/proc/${await adding.pid()}/cmdline`, "utf8");
    // Taken back letter by letter, all at once, and arrows that are not part of it.
    adding.type(
      `nonsense\u0015x\u007f${password.slice(0, 8)}\u001b[A\u001b[3~\u001bOP${password.slice(8)}\r`,
    );
    await adding.shows(/the same again:/);
    adding.type(`${password}\r`);
    assert.deepEqual(await adding.ended, { code: 0, sane: true });
    assert.match(adding.screen.text, /^ann may read$/m);
    for (const text of [adding.raw, arguments_])
      for (const part of ["correct", "horse", "nonsense", "*"]) assert.ok(!text.includes(part), part);
    assert.equal(await login("ann", password), 200);

    const differing = baton(t, "user", "passwd", "ann");
    await differing.shows(/password of ann:/);
    differing.type("another horse entirely\r");
    await differing.shows(/the same again:/);
    differing.type("another horse entirelx\r");
    assert.deepEqual(await differing.ended, { code: 2, sane: true });
    assert.match(differing.screen.text, /the two passwords differ/);

    const left = baton(t, "user", "passwd", "ann");
    await left.shows(/password of ann:/);
    left.type("anot\u0003");
    assert.deepEqual(await left.ended, { code: 2, sane: true });
    assert.equal(await login("ann", password), 200, "nothing was changed");

    const killed = baton(t, "user", "passwd", "ann");
    await killed.shows(/password of ann:/);
    process.kill(await killed.pid(), "SIGTERM");
    assert.equal((await killed.ended).sane, true, "the terminal shows again what is typed");
  });

  it("warns of a token that everybody can see", async (t) => {
    const seen = baton(t, "status", "--token", "baton_whatever");
    await seen.shows(/every user of this machine can see --token/);
    assert.equal((await seen.ended).code, 0);
  });

  it("shows a bar while a node drains, and takes it away", async (t) => {
    for (const ms of [4_500, 3_000]) {
      await node.begins({ task: "work", payload: { ms } });
    }
    const draining = baton(t, "node", "drain", "solo");
    await draining.shows(/Yes/);
    draining.type("y");
    await draining.shows(/^solo +\[=*> *\] +\d+% +[01] of [12]/m);
    assert.equal((await draining.ended).code, 0);
    assert.match(draining.screen.text, /\nsolo is drained: nothing runs there$/);
    assert.doesNotMatch(draining.screen.text, /\[=/, "the bar is taken away");
    await node.client.cluster.resume("solo");
    await eventually(
      "the node to work again",
      async () => (await node.client.cluster.node("solo")).status === "active",
    );
  });
});

/** `baton top` on a real terminal, against a real node. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { before, describe, it } from "node:test";
import { suiteScope } from "../../../support/node-cleanup.ts";
import { dataDirectory, NodeProcess } from "../../../support/process-node.ts";
import { BIN, COMPILED } from "../../../support/process.ts";
import { NO_PTY, Pty } from "../../../support/pty.ts";
import type { PtyOptions } from "../../../support/pty.ts";
import { eventually } from "../../../support/wait.ts";

describe("baton top on a terminal", { skip: NO_PTY }, () => {
  const suite = suiteScope();
  let node: NodeProcess;

  before(async () => {
    node = await NodeProcess.start(suite, { data: await dataDirectory(suite), name: "solo" });
    await node.client.submit({ task: "hold", queue: "slow" });
  });

  function top(t: Parameters<typeof Pty.open>[0], options: PtyOptions = {}): Pty {
    const environment = { NODE_COMPILE_CACHE: COMPILED, ...options.environment };
    return Pty.open(t, [process.execPath, BIN, "top", "--url", node.url], { ...options, environment });
  }

  it("shows the node, its queues and what runs, steers a queue after a yes, and leaves the terminal as it was", async (t) => {
    const screen = top(t);
    await screen.shows(/solo leads, epoch 1/);
    await screen.shows(/^solo +active +leader +1 /m);
    await screen.shows(/^solo-\S+ +hold +\S+/m);
    assert.equal(screen.screen.alternate, true);
    assert.equal(screen.screen.cursorHidden, true);
    assert.match(screen.screen.lines[0]!, /\d\d:\d\d:\d\d$/, "the last column is not cut off");

    screen.type("2p");
    await screen.shows(/Pause queue slow\? Jobs that run go on\. {2}y\/n/);
    screen.type("n");
    await screen.shows(/nothing was changed/);
    screen.type("p");
    await screen.shows(/y\/n/);
    screen.type("y");
    await screen.shows(/slow is paused/);
    const paused = async (): Promise<true | null> =>
      (await node.client.queues()).queues.find(({ name }) => name === "slow")?.paused || null;
    assert.equal(await eventually("the queue to be paused", paused), true);
    await screen.shows(/^slow +paused/m);

    screen.resize(40, 130);
    await screen.shows(/NODES .* VERSION +URL/);
    assert.equal(screen.screen.lines.length, 40);
    screen.type("?");
    await screen.shows(/drain the node: it finishes what runs/);
    screen.type("\u001b");
    screen.type("q");
    const { code, sane } = await screen.ended;
    assert.deepEqual([code, sane], [0, true]);
    assert.deepEqual(
      [screen.screen.alternate, screen.screen.cursorHidden, screen.screen.wraps],
      [false, false, true],
    );
    assert.equal(screen.screen.text, "", "nothing is left behind");
  });

  for (const [signal, expected] of [
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const) {
    it(`leaves the terminal as it was also by ${signal}`, async (t) => {
      const screen = top(t);
      await screen.shows(/solo leads/);
      process.kill(await screen.pid(), signal);
      const { code, sane } = await screen.ended;
      assert.deepEqual(
        [code, sane, screen.screen.alternate, screen.screen.cursorHidden],
        [expected, true, false, false],
      );
    });
  }

  it("leaves the terminal as it was also when it crashes, with the error to be read", async (t) => {
    const crash = "data:text/javascript,setTimeout(()=>{throw(Error('a%20planted%20crash'))},1500)";
    const screen = top(t, { environment: { NODE_OPTIONS: `--import=${crash}` } });
    await screen.until("the screen", () => screen.screen.alternate);
    const { code, sane } = await screen.ended;
    assert.deepEqual(
      [code, sane, screen.screen.alternate, screen.screen.cursorHidden],
      [1, true, false, false],
    );
    assert.match(screen.screen.text, /Error: a planted crash/);
  });

  it("has no colours with NO_COLOR", async (t) => {
    const screen = top(t, { environment: { NO_COLOR: "1" } });
    await screen.shows(/solo leads/);
    // oxlint-disable-next-line no-control-regex
    assert.doesNotMatch(screen.raw, /\u001b\[[1-9][\d;]*m/);
    screen.type("\u0003");
    assert.equal((await screen.ended).code, 0);
  });

  it("is a line for each look where no terminal is", async () => {
    const child = spawn(process.execPath, [BIN, "top", "--url", node.url], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    try {
      const [line] = (await child.stdout.take(1).toArray()) as [Buffer];
      assert.match(
        line.toString(),
        /^\S+Z solo leads \(epoch 1\); 1\/1 nodes; in .*; running \d+\/\d+, waiting 0/,
      );
      assert.ok(!line.includes("\u001b"));
    } finally {
      child.kill("SIGKILL");
    }
  });
});

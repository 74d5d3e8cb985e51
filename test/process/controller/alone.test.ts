/** A node-controller on a store of its own, where the controller leads at once (S95, S99). */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { atEnd } from "../../support/node-cleanup.ts";
import { dataDirectory } from "../../support/process-node.ts";
import { BIN } from "../../support/process.ts";
import { eventually } from "../../support/wait.ts";
import { runCli } from "../../unit/cli/run-cli.ts";
import { agentOf, ControllerProcess, isAlive, untilGone } from "./world.ts";

describe("a node-controller alone", () => {
  it("leads at once without ever having started its agent, tells of it, and ends with both when asked", async (t) => {
    const node = await ControllerProcess.start(t);
    const report = await node.leading();
    assert.equal(report.status, "running");
    assert.equal(report.pid, node.pid);
    assert.equal(agentOf(report).state, "off");
    assert.deepEqual(node.beats(), []);
    const role = await fetch(`${report.url}/role`).then(
      (answer) => answer.json() as Promise<{ role: string }>,
    );
    assert.equal(role.role, "LEADER");

    const shown = await runCli(["controller", "status", "--data", node.data, "-o", "json"]);
    assert.equal(shown.code, 0);
    assert.deepEqual(JSON.parse(shown.out), node.report());
    const table = await runCli(["controller", "status", "--data", node.data], { clock: systemClock });
    assert.match(table.out, /role +LEADER \(epoch 1\)/);
    assert.match(table.out, new RegExp(`controller +running +${report.controller.pid} `));

    node.child.kill("SIGTERM");
    assert.deepEqual(await node.exited, { code: 0, signal: null });
    assert.equal(isAlive(report.controller.pid!), false);
    const after = await runCli(["controller", "status", "--data", node.data]);
    assert.equal(after.code, 1);
    assert.match(after.err, /does not run/);
  });

  it("is refused where another runs, with its pid; one that was killed leaves no lock behind", async (t) => {
    const first = await ControllerProcess.start(t);
    const { incarnation } = await first.leading();
    const second = await ControllerProcess.start(t, { data: first.data, name: "other" });
    assert.equal((await second.exited).code, 1);
    assert.match(
      second.stderr,
      new RegExp(`node-controller runs already in .*: solo \\(pid ${first.pid}, since`),
    );
    assert.match(second.stderr, /hint: .*--data/);
    assert.equal(first.report()?.incarnation, incarnation, "the first was not disturbed");

    const { controller } = first.report()!;
    first.child.kill("SIGKILL");
    await first.exited;
    await untilGone([controller.pid!]);
    const third = await ControllerProcess.start(t, { data: first.data });
    assert.notEqual((await third.leading()).incarnation, incarnation);
  });

  it("killed before its child has looked around leaves nobody behind: the child ends by itself", async (t) => {
    const data = await dataDirectory(t);
    const child = spawn(process.execPath, [BIN, "start", "--data", data, "--port", "0"], {
      // As the child of a parent that is gone: it has a channel, and somebody else for a parent.
      env: { PATH: process.env["PATH"], BATON_LAUNCHER: "1", BATON_SUPERVISOR: "1" },
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    atEnd(t, () => child.kill("SIGKILL"));
    const signal = await eventually("it to end", () => child.signalCode, 60_000);
    assert.equal(signal, "SIGKILL");
    assert.equal(existsSync(join(data, "baton.db")), false, "it has not become a node");
  });

  it("killed with -9 leaves nobody behind, not even a controller that stands still", async (t) => {
    const node = await ControllerProcess.start(t);
    const pid = (await node.leading()).controller.pid!;
    process.kill(pid, "SIGSTOP");
    node.child.kill("SIGKILL");
    t.diagnostic(`gone after ${(await untilGone([pid])).toFixed(0)} ms`);
    const shown = await runCli(["controller", "status", "--data", node.data, "-o", "json"]);
    assert.equal(shown.code, 1);
    assert.equal((JSON.parse(shown.out) as { controller: { pid: null } }).controller.pid, null);
  });
});

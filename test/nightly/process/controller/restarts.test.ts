/** Children that end, hang or cannot start (S96). */

import assert from "node:assert/strict";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { QUICK } from "../../../support/cluster.ts";
import { atEnd } from "../../../support/node-cleanup.ts";
import { PostgresServer } from "../../../support/postgres-server.ts";
import { dataDirectory } from "../../../support/process-node.ts";
import { eventually } from "../../../support/wait.ts";
import { runCli } from "../../../unit/cli/run-cli.ts";
import { ControllerProcess, isAlive } from "../../../process/controller/world.ts";

describe("a node-controller", () => {
  it("goes on trying with a controller that cannot start, slower and slower and degraded; and recovers", async (t) => {
    const data = await dataDirectory(t);
    writeFileSync(join(data, "baton.db"), "this is no database at all".repeat(400));
    const node = await ControllerProcess.start(t, { data, settings: { CONTROLLER__RESTART_MAX: "2s" } });
    await node.when("to be degraded", ({ status }) => status === "degraded");
    const shown = await runCli(["controller", "status", "--data", data]);
    assert.equal(shown.code, 1);
    assert.match(shown.err, /keeps crashing/);
    await eventually("four crashes", async () => node.log("it is started again").length >= 4);
    const delays = node.log("it is started again").map(({ delayMs }) => delayMs);
    assert.deepEqual(delays.slice(0, 4), [100, 200, 400, 800]);
    assert.equal((await node.when("a last exit", () => true)).controller.last_exit!.code, 1);

    renameSync(join(data, "baton.db"), join(data, "broken"));
    await node.leading();
    await node.when("to be well again", ({ status }) => status === "running");
  });

  it("whose controller keeps crashing does not keep the others from leading, and is still there", async (t) => {
    const server = await PostgresServer.shared();
    atEnd(t, () => server.stop());
    const settings = { ...QUICK, STORE: await server.createDatabase(), CONTROLLER__RESTART_MAX: "30s" };
    const ada = await ControllerProcess.start(t, { name: "ada", settings });
    const { leader_epoch: epoch } = await ada.leading();
    const bob = await ControllerProcess.start(t, { name: "bob", settings });
    await bob.moonlighting();

    const over = new AbortController();
    atEnd(t, () => over.abort());
    const crashing = (async () => {
      for (let last = 0; !over.signal.aborted; await systemClock.sleep(20)) {
        const pid = ada.report()?.controller.pid ?? null;
        if (pid === null || pid === last) continue;
        // A life that is long enough to ask for the lock, and at times to get it.
        await systemClock.sleep(500, over.signal);
        if (isAlive(pid)) process.kill(pid, "SIGKILL");
        last = pid;
      }
    })();
    const next = await bob.leading();
    assert.ok(next.leader_epoch! > epoch!);
    await ada.when("to be degraded", ({ status }) => status === "degraded", 30_000);
    await ada.when("to have crashed five times", ({ controller }) => controller.restarts >= 5, 60_000);
    // Whoever led last, somebody does.
    const { role } = await bob.leading();
    assert.equal(role, "LEADER");
    assert.equal(ada.child.exitCode, null, "the node-controller is there");
    over.abort();
    await crashing;
  });
});

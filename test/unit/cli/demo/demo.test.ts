import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { beforeEach, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import {
  DEMO_NODES,
  demoChild,
  demoPorts,
  demoTasks,
  writeDemoFiles,
} from "../../../../src/cli/demo/demo-plan.ts";
import { agreedLeader, changes, nextSteps, type Seen } from "../../../../src/cli/demo/demo.ts";
import { fabricOf } from "../../../../src/config/fabric.ts";
import { loadSettings } from "../../../../src/config/load-settings.ts";
import { secretAdvice } from "../../../../src/config/secrets/cluster-secret.ts";
import { FOREIGN_FILE_VARIABLE } from "../../../../src/config/sources/dialects/dialects.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { newSecret } from "../../../../src/platform/random.ts";
import { suiteDirectory } from "../../../support/node-cleanup.ts";
import { column } from "../../../support/columns.ts";
import { caught, runCli } from "../run-cli.ts";

const root = suiteDirectory();

let directory = root;
let count = 0;
beforeEach(() => {
  directory = join(root, String(count++));
  mkdirSync(directory);
});

it("the end of a demo tells what to try next, with commands that there are", async () => {
  const text = nextSteps({ err: caught().stream, cwd: root });
  assert.match(text, /^\nThe demo has ended, and its jobs are gone. What to try next:\n/);
  for (const [, command, flags] of text.matchAll(/baton (demo|start) ((?:--[a-z]+ ?\S*? ?)+)/g)) {
    const { out } = await runCli([command!, "--help"]);
    for (const [flag] of flags!.matchAll(/--[a-z]+/g)) assert.ok(out.includes(flag), `${command} ${flag}`);
  }
  assert.equal([...text.matchAll(/baton (?:demo|start|doctor)/g)].length, 4);
});

describe("the files of a demo", () => {
  it("are valid configurations of one cluster of peers, for their owner alone", () => {
    const secret = newSecret();
    const { folders } = demoTasks(directory);
    const plans = writeDemoFiles({ directory, ports: [9001, 9002, 9003], tasks: folders, secret });
    assert.deepEqual(column(plans, "name"), DEMO_NODES);
    const data = new Set<string>();
    for (const [index, { name, url, config }] of plans.entries()) {
      const { settings } = loadSettings({ cwd: directory, configFile: config, environment: {} });
      assert.equal(fabricOf(settings), "peers");
      assert.deepEqual(
        [settings.name, settings.http.host, settings.http.port],
        [name, "127.0.0.1", 9001 + index],
      );
      assert.equal(settings.nodes[name], url);
      assert.equal(Object.keys(settings.nodes).length, 3);
      assert.equal(settings.cluster.secret, secret);
      assert.deepEqual(secretAdvice(settings), []);
      for (const folder of settings.tasks) assert.ok(existsSync(folder), folder);
      if (process.platform !== "win32") assert.equal(statSync(config).mode & 0o777, 0o600);
      data.add(settings.data);
    }
    assert.equal(data.size, 3);
  });

  it("have ports that nobody uses", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const ports = await demoPorts(port, false);
      assert.equal(new Set(ports).size, 3);
      assert.ok(!ports.includes(port) && ports.every((each) => each > port));
      await assert.rejects(demoPorts(port, true), { exitCode: 78, message: /is in use/ });
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });
});

describe("a node of a demo", { skip: process.platform === "win32" }, () => {
  it("leads a group of its own, writes a log, gets no settings of ours, and is reported when it is killed", async () => {
    const file = join(directory, "child.mjs");
    writeFileSync(file, "setInterval(() => {}, 1e6); console.log(Object.keys(process.env).join());");
    const ended = Promise.withResolvers<string>();
    const log = join(directory, "log");
    const environment = {
      PATH: process.env["PATH"],
      BATON_NAME: "other",
      [FOREIGN_FILE_VARIABLE]: "other",
    };
    const terminal = { cwd: directory, environment, clock: systemClock };
    const child = demoChild({ name: "node-a", log }, [file], terminal, ended.resolve);
    child.turnOn();
    try {
      while (!existsSync(log) || !readFileSync(log, "utf8").endsWith("\n")) await pause(10);
      assert.match(readFileSync(log, "utf8"), /PATH/);
      assert.match(readFileSync(log, "utf8"), /BATON_LAUNCHER/);
      assert.doesNotMatch(readFileSync(log, "utf8"), new RegExp(`BATON_NAME|${FOREIGN_FILE_VARIABLE}`));
      process.kill(-child.pid!, "SIGKILL");
      assert.equal(await ended.promise, "SIGKILL");
    } finally {
      await child.turnOff({ hurryMs: 0, killMs: 0 });
    }
    assert.equal(child.pid, null);
  });
});

describe("what a demo shows", () => {
  const seen = (name: string, leader: string | null, epoch = 1): Seen => ({
    name,
    pid: 1,
    says: { role: leader === name ? "LEADER" : "STANDBY", leader, epoch: leader ? epoch : null },
  });
  const gone = (name: string): Seen => ({ name, pid: null, says: null });
  const all = (leader: string, epoch = 1): Seen[] => ["a", "b", "c"].map((name) => seen(name, leader, epoch));

  it("is a leader only if more than half of all nodes follow it under one epoch", () => {
    assert.deepEqual(agreedLeader(all("c")), { name: "c", epoch: 1 });
    assert.deepEqual(agreedLeader([seen("a", "c"), seen("b", "c"), gone("c")]), { name: "c", epoch: 1 });
    assert.equal(agreedLeader([seen("a", "a"), seen("b", "b"), seen("c", "c")]), null);
    assert.equal(agreedLeader([seen("a", "c", 1), seen("b", "c", 2), gone("c")]), null);
    assert.equal(agreedLeader([seen("a", null), seen("b", null), gone("c")]), null);
  });

  it("is one line for each change, and none for the rest", () => {
    const kill = process.platform === "win32" ? "taskkill /F /PID 1" : "kill -9 1";
    assert.deepEqual(changes(all("c"), all("c")), []);
    const after = [seen("a", "b", 2), seen("b", "b", 2), gone("c")];
    assert.deepEqual(changes(all("c"), after), [`b leads under epoch 2    ${kill}`]);
    assert.deepEqual(changes(all("c"), [seen("a", null), seen("b", null), gone("c")]), [
      "no leader that most nodes agree on",
    ]);
    assert.deepEqual(changes(after, all("b", 2)), ["c answers"]);
    assert.deepEqual(changes(all("b"), [...all("b").slice(0, 2), { name: "c", pid: 1, says: null }]), [
      "c does not answer",
    ]);
    assert.deepEqual(changes(all("b", 1), all("b", 2)), [`b leads under epoch 2    ${kill}`]);
  });
});

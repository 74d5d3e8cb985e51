import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, it } from "node:test";
import { parse } from "yaml";
import { EXIT } from "../../../../src/cli/failure.ts";
import { loadSettings } from "../../../../src/config/load-settings.ts";
import { runCli } from "../run-cli.ts";
import { suiteDirectory } from "../../../support/node-cleanup.ts";

const cwd = suiteDirectory();
beforeEach(() => rmSync(join(cwd, "baton.yaml"), { force: true }));

describe("baton config check", () => {
  it("says on stderr that all is well", async () => {
    const { code, out, err } = await runCli(["config", "check"], { cwd });
    assert.deepEqual({ code, out }, { code: 0, out: "" });
    assert.equal(err, "the configuration is valid (no file, defaults and environment only)\n");
  });

  it("tells all mistakes and exits with 78", async () => {
    writeFileSync(join(cwd, "baton.yaml"), "http:\n  prot: 1\nname: x\n");
    const environment = { BATON_JOBS__TIMEOUT: "5" };
    const { code, err } = await runCli(["config", "check", "--port", "99999"], { cwd, environment });
    assert.equal(code, 78);
    assert.deepEqual(err.trimEnd().split("\n"), [
      "error: 3 mistakes in the configuration",
      "baton.yaml:2:3: unknown setting http.prot; did you mean http.port?",
      "BATON_JOBS__TIMEOUT needs a unit: write 5s or 5ms, not 5",
      "--port must be at most 65535",
    ]);
  });

  it("passes warnings on", async () => {
    const { code, err } = await runCli(["config", "check"], { cwd, environment: { BATON_HTTP_PORT: "1" } });
    assert.equal(code, 0);
    assert.match(err, /^warning: BATON_HTTP_PORT is ignored; did you mean BATON_HTTP__PORT\?$/m);
  });
});

describe("baton config print", () => {
  it("prints a file that means the same", async () => {
    const args = ["config", "print", "--name", "n-1", "--tasks", "a", "--tasks", "b", "--concurrency", "3"];
    const { code, out } = await runCli(args, { cwd, environment: { BATON_LEADER__LEASE: "90s" } });
    assert.equal(code, 0);
    writeFileSync(join(cwd, "baton.yaml"), out);
    const again = loadSettings({ cwd, environment: {} }).settings;
    assert.deepEqual(again, {
      ...loadSettings({
        cwd,
        environment: { BATON_LEADER__LEASE: "90s" },
        flags: { name: "n-1", tasks: ["a", "b"], "worker.concurrency": "3" },
      }).settings,
    });
    assert.equal(again.leader.leaseMs, 90_000);
    assert.deepEqual(again.tasks, [join(cwd, "a"), join(cwd, "b")]);
  });

  it("shows no password, in any form", async () => {
    const environment = { BATON_STORE: "postgres://me:hidden@db/x" };
    for (const format of ["yaml", "json", "table"]) {
      for (const more of [[], ["--with-source"]]) {
        const { out, err } = await runCli(["config", "print", "-o", format, ...more], { cwd, environment });
        assert.match(out, /postgres:\/\/me:\*\*\*@db\/x/);
        assert.doesNotMatch(out + err, /hidden/);
      }
    }
    const broken = await runCli(["config", "check", "--store", "postgres://me:hidden@db:x/y"], { cwd });
    assert.equal(broken.code, 78);
    assert.doesNotMatch(broken.err, /hidden/);
  });

  it("names the profile that a value comes from", async () => {
    const { out } = await runCli(["config", "print", "--with-source", "--profile", "wan"], { cwd });
    assert.match(out, /^ {2}lease: 1m # profile wan$/m);
    assert.match(out, /^profile: wan # --profile$/m);
  });

  it("says where each value comes from", async () => {
    writeFileSync(join(cwd, "baton.yaml"), "name: n-1\nworker:\n  queues: [a]\n");
    const environment = { BATON_HTTP__PORT: "81" };
    const args = ["config", "print", "--with-source", "--log-level", "warn"];
    const yaml = await runCli(args, { cwd, environment });
    assert.match(yaml.out, /^name: n-1 # baton\.yaml:1:7$/m);
    assert.match(yaml.out, /^ {2}port: 81 # BATON_HTTP__PORT$/m);
    assert.match(yaml.out, /^ {2}level: warn # --log-level$/m);
    assert.match(yaml.out, /^ {2}lease: 10s # default$/m);
    assert.equal((parse(yaml.out) as { name: string }).name, "n-1");

    const json = await runCli([...args, "-o", "json"], { cwd, environment });
    const data = JSON.parse(json.out) as { worker: { queues: unknown } };
    assert.deepEqual(data.worker.queues, { value: ["a"], source: "baton.yaml:3:11" });

    const table = await runCli([...args, "-o", "table"], { cwd, environment });
    assert.match(table.out, /^http\.port +81 +BATON_HTTP__PORT$/m);
  });
});

describe("the command line", () => {
  it("suggests the nearest command and exits with 2", async () => {
    const { code, out, err } = await runCli(["job", "list"], { cwd });
    assert.equal(code, 2);
    assert.equal(out, "");
    assert.match(err, /unknown command 'job'\n\(Did you mean jobs\?\)/);
  });

  it("prints help and version on stdout and exits with 0", async () => {
    const help = await runCli(["--help"], { cwd });
    assert.equal(help.code, 0);
    assert.match(help.out, /^Starting commands:\n(?:.*\n)+? {2}demo +\S.*\n {2}start +start a node$/m);
    assert.ok(
      help.out.split("\n").every((line) => line.length <= 80),
      "readable at 80 columns",
    );
    const codes = help.out.replaceAll(/\s+/g, " ");
    const documented = readFileSync(new URL("../../../../docs/operations.md", import.meta.url), "utf8");
    for (const code of Object.values(EXIT)) {
      assert.match(codes, new RegExp(`(?:Exit codes:|,) ${code} [a-z]`), `exit code ${code}`);
      assert.ok(documented.includes(`\n| ${code} | `), `exit code ${code}`);
    }
    const version = await runCli(["--version"], { cwd });
    assert.match(version.out, /^\d+\.\d+\.\d+\n$/);
  });

  it("has in the help of a command what belongs to it, its own options first", async () => {
    const start = await runCli(["start", "--help"], { cwd });
    assert.match(start.out, /^ {2}--redis /m);
    for (const command of ["doctor", "config check", "config print", "controller status"]) {
      const { out } = await runCli(`${command} --help`, { cwd });
      assert.match(out, /^Settings \(all flags of `baton start` are taken\):\n {2}--config /m);
      assert.doesNotMatch(out, /--redis|--concurrency/, command);
    }
    const { out } = await runCli("submit --help", { cwd });
    assert.deepEqual(out.match(/^\S.*:$/gm), ["Arguments:", "Options:", "Node and output:"]);
    assert.ok(out.indexOf("--wait") < out.indexOf("--url"));
  });

  it("prints help on stderr and exits with 2 when no command is given", async () => {
    for (const args of [[], ["node"], ["config"]]) {
      const { code, out, err } = await runCli(args, { cwd });
      assert.equal(code, 2);
      assert.equal(out, "");
      assert.match(err, /^Usage: baton/);
    }
  });

  it("refuses arguments that are too many", async () => {
    for (const args of [
      ["status", "extra"],
      ["jobs", "list", "extra"],
    ]) {
      const { code, err } = await runCli(args, { cwd });
      assert.equal(code, 2);
      assert.match(err, /too many arguments/);
    }
  });

  it("suggests the nearest command also where a group has one that goes without saying", async () => {
    for (const [args, said] of [
      [["jobs", "shwo"], "unknown command 'shwo'\n(Did you mean show?)"],
      [["queues", "puase", "mail"], "unknown command 'puase'\n(Did you mean pause?)"],
      [["nodes", "xyz"], "unknown command 'xyz'"],
      [
        ["queues", "--url", "http://x", "pause", "q"],
        "'pause' must come before the options: baton queues pause …",
      ],
    ] as const) {
      const { code, out, err } = await runCli(args, { cwd });
      assert.deepEqual([code, out], [2, ""]);
      assert.ok(err.includes(said), err);
    }
  });

  it("suggests the nearest option", async () => {
    const { code, err } = await runCli(["jobs", "--statos", "failed"], { cwd });
    assert.equal(code, 2);
    assert.match(err, /Did you mean --status\?/);
  });
});

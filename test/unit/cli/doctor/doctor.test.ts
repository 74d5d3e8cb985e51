import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { runCli } from "../run-cli.ts";
import { suiteDirectory } from "../../../support/node-cleanup.ts";
import { columns } from "../../../support/columns.ts";

const cwd = suiteDirectory();
const LOCAL = "configuration,runtime,data,secrets,exposure,port,database,redis,etcd";

async function doctor(...args: readonly string[]) {
  const ran = await runCli(["doctor", ...args], { cwd, clock: systemClock, environment: { PATH: "" } });
  return { ...ran, lines: ran.out.split("\n") };
}

describe("baton doctor", () => {
  it("is content with a machine on which nothing runs yet", async () => {
    const { code, lines, err } = await doctor("--only", LOCAL, "--port", "0");
    assert.equal(code, 0, err);
    assert.match(lines[0]!, /^ok +configuration +valid \(no file: defaults and environment\)$/);
    assert.ok(lines.some((line) => /^ok +data +\S+\.baton can be made, /.test(line)));
    assert.match(err, /^\d+ ok, 0 warnings, 0 failed, 3 not looked at\n$/);
  });

  it("tells every mistake in the file with its line, and looks at the rest", async () => {
    writeFileSync(join(cwd, "bad.yaml"), "http:\n  port: 99999\nworker:\n  concurrancy: 3\n");
    const { code, out } = await doctor("--config", "bad.yaml", "--only", LOCAL);
    assert.equal(code, 1);
    assert.match(out, /^failed +configuration +bad\.yaml:2:\d+.*port/m);
    assert.match(out, /^failed +configuration +bad\.yaml:4:\d+.*concurrency/m);
    assert.match(out, /^ok +runtime +Node /m);
    assert.match(out, /data, secrets, .*: the configuration is wrong, and/);
  });

  it("finds a secret that others can read, and knows that callers are asked for a token", async () => {
    const file = join(cwd, "peers.yaml");
    const nodes = "nodes: { a: http://10.0.0.1:8420, b: http://10.0.0.2:8420 }\n";
    writeFileSync(
      file,
      `name: a\n${nodes}cluster:\n  secret: ${"x1y2z3w4".repeat(2)}abcdefghijklmnopqrstu\n`,
    );
    chmodSync(file, 0o644);
    const { code, out } = await doctor(
      "--config",
      "peers.yaml",
      "--only",
      "configuration,secrets,exposure",
      "-o",
      "json",
    );
    assert.equal(code, 1);
    const { findings, ok } = JSON.parse(out) as { ok: boolean; findings: Record<string, string>[] };
    assert.equal(ok, false);
    assert.deepEqual(columns(findings, "check", "verdict", "remedy"), [
      ["configuration", "ok", null],
      ["secrets", "failed", "type: chmod 600 peers.yaml"],
      ["exposure", "ok", null],
    ]);
  });

  it("exits with 5 when nothing of what was named can be reached", async () => {
    const args = ["--url", "http://127.0.0.1:1", "--only", "nodes,cluster,clocks", "--timeout", "5s"];
    const { code, out, err } = await doctor(...args);
    assert.equal(code, 5, err);
    assert.match(out, /^failed +nodes +no node answers at http:\/\/127\.0\.0\.1:1: ECONNREFUSED$/m);
    assert.match(err, /error: nothing could be reached: nodes/);
  });

  it("names the nearest check", async () => {
    const { code, err } = await doctor("--only", "clock");
    assert.equal(code, 2);
    assert.match(err, /There is no check clock; did you mean clocks\?/);
  });
});

import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { weakness } from "../../../../src/config/secrets/cluster-secret.ts";
import { runCli } from "../run-cli.ts";
import { suiteDirectory } from "../../../support/node-cleanup.ts";

const cwd = suiteDirectory();

const OPEN = "a=http://10.0.0.1:8420,b=http://10.0.0.2:8420";

describe("baton secret create", () => {
  it("prints a new secret each time, and nothing else", async () => {
    const { code, out, err } = await runCli(["secret", "create"], { cwd });
    assert.deepEqual([code, err], [0, ""]);
    assert.match(out, /^[A-Za-z0-9_-]{43}\n$/);
    assert.notEqual((await runCli(["secret", "create"], { cwd })).out, out);
  });

  it("writes it into a file for its owner alone, and keeps what is there", async () => {
    const { code, out, err } = await runCli(["secret", "create", "--file", "s"], { cwd });
    assert.deepEqual([code, out], [0, ""]);
    assert.match(err, /^s has a new secret; copy it to every node and set BATON_SECRET_FILE to its path\n$/);
    const secret = readFileSync(join(cwd, "s"), "utf8");
    assert.equal(weakness(secret.trim()), null);
    assert.ok(!err.includes(secret.trim()));
    if (process.platform !== "win32") assert.equal(statSync(join(cwd, "s")).mode & 0o777, 0o600);

    const again = await runCli(["secret", "create", "--file", "s"], { cwd });
    assert.equal(again.code, 1);
    assert.match(
      again.err,
      /^error: s is there already, and its secret may be in use\nhint: give another --file/,
    );
    assert.equal(readFileSync(join(cwd, "s"), "utf8"), secret);
  });

  it("says that there is no such directory", async () => {
    const { code, err } = await runCli(["secret", "create", "--file", "no/s"], { cwd });
    assert.deepEqual([code, err], [1, "error: no/s cannot be written: there is no such directory\n"]);
  });
});

describe("a cluster of peers in baton config", () => {
  const args = ["--name", "a", "--nodes", OPEN];

  it("check refuses what start would refuse, with the line to type", async () => {
    const { code, err } = await runCli(["config", "check", ...args], { cwd });
    assert.equal(code, 78);
    assert.match(
      err,
      /^error: cluster\.secret is missing, .*type `baton secret create --file baton\.secret`/,
    );
    assert.equal((await runCli(["config", "check", ...args, "--insecure"], { cwd })).code, 0);
  });
});

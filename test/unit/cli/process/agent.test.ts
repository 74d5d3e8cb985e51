import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { runCli } from "../run-cli.ts";
import { suiteDirectory } from "../../../support/node-cleanup.ts";

const empty = suiteDirectory();

async function refused(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  return runCli(["agent", ...args], { cwd: empty, environment });
}

describe("baton agent", () => {
  it("refuses addresses that are none, and blames the one who gave them", async () => {
    const flag = await refused(["--url", "http://127.0.0.1:1,nowhere", "--tasks", empty]);
    assert.deepEqual([flag.code, /--url must be a URL.*"nowhere"/.test(flag.err)], [2, true], flag.err);
    const variable = await refused(["--tasks", empty], { BATON_URL: "ftp://x" });
    assert.deepEqual([variable.code, /BATON_URL must be a URL/.test(variable.err)], [2, true], variable.err);
  });

  it("needs tasks", async () => {
    const none = await refused([]);
    assert.deepEqual(
      [none.code, /no folder was given; name a folder with --tasks/.test(none.err)],
      [78, true],
      none.err,
    );
    const nothing = await refused(["--tasks", empty]);
    assert.deepEqual([nothing.code, /there are none in/.test(nothing.err)], [78, true], nothing.err);
    const nowhere = await refused(["--tasks", join(empty, "nowhere")]);
    assert.deepEqual([nowhere.code, /there is no folder/.test(nowhere.err)], [78, true], nowhere.err);
  });

  it("refuses names, queues and numbers that cannot be", async () => {
    const wrong = [
      [["--name", "a/b"], 2, /--name.*letters, digits/s],
      [["--queues", "good,b ad"], 2, /"b ad" is no name of a queue/],
      [["--concurrency", "0"], 2, /at least 1/],
      [["--concurrency", "many"], 78, /--concurrency/],
    ] as const;
    for (const [args, code, message] of wrong) {
      const ran = await refused(args);
      assert.equal(ran.code, code, ran.err);
      assert.match(ran.err, message);
    }
  });
});

import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { beforeEach, describe, it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { baton, runtimes } from "../process.ts";
import type { TestProcess } from "../../../support/process.ts";
import { runCli } from "../run-cli.ts";
import { suiteDirectory } from "../../../support/node-cleanup.ts";

const root = suiteDirectory();

let cwd = root;
let count = 0;
beforeEach(() => {
  cwd = join(root, String(count++));
  mkdirSync(join(cwd, "tasks"), { recursive: true });
  writeFileSync(
    join(cwd, "tasks/greet.ts"),
    "export default async (payload) => ({ hello: payload.name });\n",
  );
});

function start(args: readonly string[] = [], runtime?: string): TestProcess {
  return baton(["start", "--name", "node-1", "--tasks", "tasks", ...args], { cwd, runtime });
}

async function urlOf(node: TestProcess): Promise<string> {
  return (await node.told(/listening on (\S+)/))[1]!;
}

async function listen(port: number): Promise<AsyncDisposable & { port: number }> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

for (const [name, runtime] of runtimes) {
  describe(
    `baton start with ${name}`,
    { skip: runtime === null ? "there is no older Node here" : false },
    () => {
      it("runs jobs, says what to try, and ends with 0 after SIGTERM", async () => {
        await using node = start(["--port", "0"], runtime!);
        const url = await urlOf(node);
        await node.told(/try: baton submit greet '\{\}' --wait --url http:/);
        const submitted = await runCli(["submit", "greet", '{"name":"you"}', "--wait", "--url", url], {
          clock: systemClock,
        });
        assert.equal(submitted.code, 0, submitted.err);
        assert.deepEqual(JSON.parse(submitted.out), { hello: "you" });
        node.child.kill("SIGTERM");
        const { code, out } = await node.ended;
        assert.equal(code, 0);
        const lines = out.trimEnd().split("\n");
        for (const line of lines) assert.equal((JSON.parse(line) as { node: string }).node, "node-1");
        assert.ok(existsSync(join(cwd, ".baton")));
      });
    },
  );
}

describe("baton start", () => {
  it("takes the next port when nobody chose one and the default is in use", async () => {
    // If somebody else has it already, it is in use all the same.
    await using _ = await listen(8420).catch(() => listen(0));
    await using node = start();
    const [, port] = await node.told(/port 8420 is in use, taking (\d+) instead \(choose one with --port\)/);
    assert.equal(await urlOf(node), `http://127.0.0.1:${port}`);
  });
});

/** Refused before anything is opened, so no process is needed. */
describe("baton start refuses", () => {
  const refused = async (
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<string> => {
    const { code, out, err } = await runCli(["start", "--name", "node-1", ...args], { cwd, environment });
    assert.deepEqual([code, out], [78, ""], err);
    assert.ok(!existsSync(join(cwd, ".baton")));
    return err;
  };

  it("a directory of tasks that is not there", async () => {
    assert.match(await refused(["--port", "0", "--tasks", "nowhere"]), /nowhere/);
  });
});

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { COMPILED } from "../../support/process.ts";
import { fakeNode } from "./fake-node.ts";

const BIN = fileURLToPath(new URL("../../../bin/baton.mjs", import.meta.url));
const HOOK = new URL("../../support/loaded-packages.ts", import.meta.url).href;

async function packagesOf(args: readonly string[]): Promise<readonly string[]> {
  const child = spawn(process.execPath, ["--import", HOOK, BIN, ...args], {
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: COMPILED },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let text = "";
  for await (const part of child.stderr) text += String(part);
  const list = /^loaded: (.*)$/m.exec(text);
  assert.ok(list, text);
  return list[1]!.split(" ").sort();
}

describe("a command loads no package that it does not use", () => {
  it("--version needs the parser of arguments alone", async () => {
    assert.deepEqual(await packagesOf(["--version"]), ["commander"]);
  });

  it("jobs list needs the client and a table besides", async () => {
    await using node = await fakeNode({ "GET /cluster/jobs": { items: [], next_cursor: null, nodes: [] } });
    const packages = await packagesOf(["jobs", "list", "--url", node.url]);
    assert.ok(packages.includes("commander"));
    const heavy = "fastify undici pg @redis/client zod yaml pino ws vite @opentelemetry/api".split(" ");
    const found = packages.filter((name) => heavy.includes(name));
    assert.deepEqual(found, []);
  });
});

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { describe, it } from "node:test";

const HOOK = new URL("../support/loaded-packages.ts", import.meta.url).href;
const INDEX = new URL("../../src/index.ts", import.meta.url).href;

async function packagesOf(http: boolean): Promise<ReadonlySet<string>> {
  const code = `
    const { createNode } = await import(${JSON.stringify(INDEX)});
    const node = await createNode({ store: "memory", http: ${http ? "{ port: 0 }" : "false"} });
    await node.start();
    await node.stop();`;
  const child = spawn(process.execPath, ["--import", HOOK, "--input-type=module", "--eval", code], {
    env: { PATH: process.env["PATH"] },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let text = "";
  for await (const part of child.stderr) text += String(part);
  const list = /^loaded: (.*)$/m.exec(text);
  assert.ok(list, text);
  return new Set(list[1]!.split(" "));
}

describe("a node loads what it uses", () => {
  it("with a listener: what limits and schemas need waits for the first request", async () => {
    const packages = await packagesOf(true);
    assert.ok(packages.has("fastify"));
    const later = ["ajv", "@opentelemetry/api", "@fastify/rate-limit"];
    const found = later.filter((name) => packages.has(name));
    assert.deepEqual(found, []);
  });

  it("without a listener: no HTTP server at all", async () => {
    const packages = await packagesOf(false);
    const found = ["fastify", "avvio", "pg", "undici"].filter((name) => packages.has(name));
    assert.deepEqual(found, []);
  });
});

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

const BIN = fileURLToPath(new URL("../../../bin/baton.mjs", import.meta.url));
const HOOK = new URL("../../support/loaded-packages.ts", import.meta.url).href;

async function packagesOf(args: readonly string[]): Promise<readonly string[]> {
  const child = spawn(process.execPath, ["--import", HOOK, BIN, ...args], {
    env: { PATH: process.env["PATH"] },
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

  it("jobs list needs the client and a table besides", async (t) => {
    const server = createServer((_, response) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ items: [], next_cursor: null, nodes: [] }));
    });
    t.after(() => server.close());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const packages = await packagesOf(["jobs", "list", "--url", url]);
    for (const needed of ["commander", "undici"]) assert.ok(packages.includes(needed), needed);
    const heavy = [
      "fastify",
      "pg",
      "@redis/client",
      "zod",
      "yaml",
      "pino",
      "ws",
      "vite",
      "@opentelemetry/api",
    ];
    assert.deepEqual(
      packages.filter((name) => heavy.includes(name)),
      [],
    );
  });
});

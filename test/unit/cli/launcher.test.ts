import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { describe, it } from "node:test";
import { BIN as bin, COMPILED, type TestProcess } from "../../support/process.ts";
import { fakeNode, JOB_ID, jobBody } from "./fake-node.ts";
import { baton as start, olderNode as older, runtimes } from "./process.ts";
import { suiteDirectory } from "../../support/node-cleanup.ts";

const directory = suiteDirectory();

function baton(runtime: string, args: readonly string[]): TestProcess {
  return start(args, { runtime, cwd: directory });
}

const terminalMissing = spawnSync("script", ["--version"]).error
  ? "there is no script(1) to make a terminal"
  : false;

function inTerminal(runtime: string, args: readonly string[], environment: Record<string, string>): string {
  const command = [runtime, bin, ...args].map((part) => `'${part}'`).join(" ");
  const env = {
    PATH: process.env["PATH"],
    NODE_COMPILE_CACHE: COMPILED,
    TERM: "xterm-256color",
    ...environment,
  };
  const { stdout } = spawnSync("script", ["-qec", command, "/dev/null"], { cwd: directory, env });
  assert.match(stdout.toString(), /no connection to/);
  return stdout.toString();
}

/** A node whose job never ends, and a promise of the first reader of its logs. */
async function endlessJob() {
  const reader = Promise.withResolvers<ServerResponse>();
  const node = await fakeNode({
    [`GET /jobs/${JOB_ID}`]: jobBody({ status: "processing" }),
    [`GET /jobs/${JOB_ID}/logs`]: (_: unknown, response: ServerResponse) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.flushHeaders();
      reader.resolve(response);
      return "handled";
    },
  });
  return { node, reader: reader.promise };
}

for (const [name, runtime] of runtimes) {
  describe(
    `baton started with ${name}`,
    { skip: runtime === null ? "there is no older Node here" : false },
    () => {
      it("ends with the command's exit code", async () => {
        const { code } = await baton(runtime!, ["status", "--url", "http://127.0.0.1:1"]).ended;
        assert.equal(code, 5);
      });

      // Only where a launcher stands in between is there anything to pass on.
      for (const signal of runtime === older ? (["SIGTERM", "SIGINT", "SIGHUP", "SIGKILL"] as const) : []) {
        it(`ends by ${signal} like any other program, together with its child`, async () => {
          const { node, reader } = await endlessJob();
          await using _ = node;
          await using follower = baton(runtime!, ["jobs", "logs", "-f", JOB_ID, "--url", node.url]);
          const response = await reader;
          const left = new Promise((resolve) => response.on("close", resolve));
          follower.child.kill(signal);
          assert.equal((await follower.ended).signal, signal);
          await left;
        });
      }

      it(
        "colours a terminal, but neither a pipe nor one with NO_COLOR",
        { skip: terminalMissing },
        async () => {
          const args = ["status", "--url", "http://127.0.0.1:1"];
          const red = "\u001b[31m";
          assert.ok(!(await baton(runtime!, args).ended).err.includes(red));
          assert.ok(inTerminal(runtime!, args, {}).includes(red));
          assert.ok(!inTerminal(runtime!, args, { NO_COLOR: "1" }).includes("\u001b["));
        },
      );
    },
  );
}

describe("the launcher", () => {
  /** A copy of the launcher alone, as in a package without its parts. */
  function copyOf(place: string): string {
    const root = join(directory, place);
    mkdirSync(join(root, "bin"), { recursive: true });
    writeFileSync(join(root, "package.json"), '{ "type": "module" }');
    cpSync(bin, join(root, "bin/baton.mjs"));
    return root;
  }

  it("says in one line what is missing when there is no newer Node", { skip: older === null }, () => {
    const root = copyOf("alone");
    const { status, stdout, stderr } = spawnSync(older!, [join(root, "bin/baton.mjs")]);
    assert.equal(status, 1);
    assert.equal(stdout.toString(), "");
    assert.match(stderr.toString(), /^baton needs Node 24\.16 or newer and this is [\d.]+: .*\n$/);
  });

  it("runs the sources in a checkout and the build in an installed package", () => {
    for (const place of ["checkout", "node_modules/baton"]) {
      const root = copyOf(place);
      for (const [folder, file] of [
        ["src/cli", "main.ts"],
        ["dist/cli", "main.js"],
      ] as const) {
        mkdirSync(join(root, folder), { recursive: true });
        writeFileSync(
          join(root, folder, file),
          `export const run = () => console.log(${JSON.stringify(folder)});\n`,
        );
      }
      const { stdout, stderr } = spawnSync(process.execPath, [join(root, "bin/baton.mjs")]);
      assert.equal(stdout.toString(), place === "checkout" ? "src/cli\n" : "dist/cli\n", stderr.toString());
    }
  });

  it("works through the link that npm makes", () => {
    symlinkSync(bin, join(directory, "baton"));
    const { status, stdout } = spawnSync(process.execPath, [join(directory, "baton"), "--version"]);
    assert.equal(status, 0);
    const text = readFileSync(new URL("../../../package.json", import.meta.url), "utf8");
    assert.equal(stdout.toString(), `${(JSON.parse(text) as { version: string }).version}\n`);
  });
});

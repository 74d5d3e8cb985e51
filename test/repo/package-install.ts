/**
 * `npm run test:package`: the packed file as users have it, installed by npm into empty projects of every kind, on each
 * Node that can be had. Needs a registry, and checks times: it is no part of `npm test`, where test/repo/package.test.ts
 * checks the package without both.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { pack, packClient } from "../../scripts/pack.ts";
import { script } from "../support/process.ts";

const PACKAGES_MAX = 70;
/** Sum of the sizes of the files, as npm tells it; a disk takes more, by a part of a block for each file. */
const BYTES_MAX = 20e6;
const IMPORT_MS_MAX = { "batonjs/client": 40, batonjs: 250 } as const;
const IMPORTS = 9;
/** Of the majors on which the client runs; the newest of each. */
const NODES = ["20", "22", "24"];
/** Other runtimes of the client, and how they start a program. */
const OTHERS = { bun: ["bun@1.4.4"], deno: ["deno@2.9.6", "run", "--allow-net", "--allow-env"] } as const;
const TOOLS = ["publint@0.3.25", "@arethetypeswrong/cli@0.18.5", "esbuild@0.28.2", "typescript@7.0.2"];

const directory = mkdtempSync(join(tmpdir(), "baton-install-"));
const tools = join(directory, "tools", "node_modules", ".bin");
const tarballs = { batonjs: "", "batonjs-client": "" };
const runtimes = new Map<string, readonly string[]>([[process.version, [process.execPath]]]);
let project: string;
let clientProject: string;

after(() => rmSync(directory, { recursive: true, force: true }));

/** A test runner below this one that knew of it would run no test. */
const { NODE_TEST_CONTEXT: _, ...environment } = process.env;

function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    env: environment,
  });
  assert.equal(status, 0, `${command} ${args.join(" ")}: ${stdout}${stderr}${error?.message ?? ""}`);
  return stdout;
}

function install(name: string, ...packages: readonly string[]): string {
  const cwd = join(directory, name);
  mkdirSync(cwd, { recursive: true });
  writeFileSync(join(cwd, "package.json"), "{}");
  run("npm", ["install", "--loglevel=error", "--no-audit", "--no-fund", ...packages], cwd);
  return cwd;
}

before(() => {
  for (const [name, build] of [
    ["batonjs", pack],
    ["batonjs-client", packClient],
  ] as const) {
    const built = join(directory, `${name}-built`);
    build(built);
    const file = run("npm", ["pack", built, "--silent"], directory).trim();
    tarballs[name] = join(directory, file);
  }
  project = install("project", tarballs.batonjs);
  clientProject = install("client-project", tarballs["batonjs-client"]);
  install("tools", ...TOOLS);
  if (process.platform !== "linux") return;
  for (const major of NODES) {
    const name = `node-linux-${process.arch}`;
    const runtime = join(install(`node-${major}`, `${name}@${major}`), "node_modules", name, "bin", "node");
    if (existsSync(runtime)) runtimes.set(run(runtime, ["--version"], directory).trim(), [runtime]);
  }
  for (const [name, [version, ...args]] of Object.entries(OTHERS))
    runtimes.set(version, [join(install(name, version), "node_modules", ".bin", name), ...args]);
});

function sizesBelow(folder: string): { packages: number; bytes: number; blocks: number } {
  const total = { packages: 0, bytes: 0, blocks: 0 };
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const { size, blocks } = lstatSync(path);
    total.blocks += blocks * 512;
    if (entry.isDirectory()) continue;
    total.bytes += size;
    if (/node_modules\/(?:@[^/]+\/)?[^/]+\/package\.json$/.test(path)) total.packages++;
  }
  return total;
}

function medianImportMs(name: string): number {
  const code = `const from = performance.now(); await import("${name}"); console.log(performance.now() - from);`;
  writeFileSync(join(project, "import.mjs"), code);
  const times = Array.from({ length: IMPORTS }, () =>
    Number(run(process.execPath, ["import.mjs"], project)),
  ).sort((a, b) => a - b);
  return times[IMPORTS >> 1]!;
}

const USE_CLIENT = `
  const baton = createClient({ urls: process.argv[2] });
  const { id } = await baton.submit("add", { a: 6, b: 7 }, { timeout: "30s" });
  console.log(await baton.wait(id));
  await baton.close();`;
const USE_NODE = `
  const task = defineTask({ name: "shout", run: (text) => text.toUpperCase() });
  const node = await createNode({ store: "memory", tasks: [task] });
  await node.start();
  console.log(await (await node.submit(task, "it works")).result());
  await node.stop();`;

function asModule(names: string, from: string, code: string): string {
  return `import { ${names} } from "${from}";\n${code}`;
}

function asCommonJs(names: string, from: string, code: string): string {
  return `const { ${names} } = require("${from}");\n(async () => {${code}\n})();`;
}

describe("the installed package", () => {
  it("keeps to its budget of packages and megabytes", (t) => {
    const all = sizesBelow(join(project, "node_modules"));
    t.diagnostic(
      `batonjs: ${all.packages} packages, ${(all.bytes / 1e6).toFixed(1)} MB of files, ${(all.blocks / 1e6).toFixed(1)} MB on this disk`,
    );
    assert.ok(all.packages <= PACKAGES_MAX, `${all.packages} packages`);
    assert.ok(all.bytes <= BYTES_MAX, `${all.bytes} bytes`);
    const client = sizesBelow(join(clientProject, "node_modules"));
    t.diagnostic(`batonjs-client: ${client.packages} package, ${(client.bytes / 1e6).toFixed(1)} MB`);
    assert.equal(client.packages, 1);
  });

  for (const [name, most] of Object.entries(IMPORT_MS_MAX)) {
    it(`is imported in time: ${name}`, (t) => {
      const took = medianImportMs(name);
      t.diagnostic(`${name}: ${took.toFixed(0)} ms, the median of ${IMPORTS}`);
      assert.ok(took <= most, `${name} took ${took} ms`);
    });
  }

  it("runs a first job in an ESM and in a CommonJS program", () => {
    const names = "createNode, defineTask";
    writeFileSync(join(project, "node.mjs"), asModule(names, "batonjs", USE_NODE));
    writeFileSync(join(project, "node.cjs"), asCommonJs(names, "batonjs", USE_NODE));
    for (const file of ["node.mjs", "node.cjs"])
      assert.equal(run(process.execPath, [file], project), "IT WORKS\n", file);
  });

  it("runs a test with the helper for tests", () => {
    const code = `
      const baton = await testNode({ tasks: [{ name: "shout", run: (text) => text.toUpperCase() }] });
      await baton.submit("shout", "it works");
      await baton.runAll();
      console.log((await baton.jobs())[0].result);
      await baton.stop();`;
    writeFileSync(join(project, "test.mjs"), asModule("testNode", "batonjs/testing", code));
    assert.equal(run(process.execPath, ["test.mjs"], project), "IT WORKS\n");
  });

  it("creates a project whose types and test pass", () => {
    const cwd = join(directory, "my-jobs");
    const bin = join(project, "node_modules", "batonjs", "bin", "baton.mjs");
    run(process.execPath, [bin, "init", "my-jobs"], directory);
    run("npm", ["install", "--loglevel=error", "--no-audit", "--no-fund", tarballs.batonjs], cwd);
    assert.match(run("npm", ["test"], cwd), /pass 3\n/);
    run("npm", ["run", "check"], cwd);
  });

  it("starts with its command, and clients of every runtime, ESM and CommonJS, whole and bundled, run a job", async (t) => {
    const tasks = join(project, "tasks");
    mkdirSync(tasks);
    writeFileSync(join(tasks, "add.mjs"), "export default ({ a, b }) => a + b;");
    const bin = join(project, "node_modules", "batonjs", "bin", "baton.mjs");
    const args = ["start", "--tasks", tasks, "--data", join(project, "data"), "--port", "0"];
    await using node = script(bin, args, { cwd: project });
    const [, url] = await node.told(/listening on (\S+)/);
    for (const [from, cwd] of [
      ["batonjs/client", project],
      ["batonjs-client", clientProject],
    ] as const) {
      writeFileSync(join(cwd, "client.mjs"), asModule("createClient", from, USE_CLIENT));
      writeFileSync(join(cwd, "client.cjs"), asCommonJs("createClient", from, USE_CLIENT));
      const bundle = ["--bundle", "--platform=node", "--log-level=warning"];
      for (const [format, file] of [
        ["esm", "bundle.mjs"],
        ["cjs", "bundle.cjs"],
      ] as const) {
        const entry = `client.${file.slice(-3)}`;
        const esbuild = [entry, ...bundle, `--format=${format}`, `--outfile=${file}`];
        assert.equal(run(join(tools, "esbuild"), esbuild, cwd), "");
      }
      for (const [version, [runtime, ...args]] of runtimes) {
        for (const file of ["client.mjs", "client.cjs", "bundle.mjs", "bundle.cjs"])
          assert.equal(run(runtime!, [...args, file, url!], cwd), "13\n", `${from} as ${file} on ${version}`);
      }
      t.diagnostic(
        `${from}: ${[...runtimes.keys()].join(", ")}; bundle of ${lstatSync(join(cwd, "bundle.mjs")).size} bytes`,
      );
    }
    assert.equal((await node.terminate()).code, 0);
  });

  it("has types for ESM and CommonJS programs", () => {
    const options = { module: "nodenext", target: "es2024", lib: ["es2024", "esnext.disposable"] };
    for (const [cwd, client] of [
      [project, "batonjs/client"],
      [clientProject, "batonjs-client"],
    ] as const) {
      run("npm", ["install", "--silent", "--no-save", "@types/node@24"], cwd);
      const code = `import { BatonError, type Client, createClient } from "${client}";
        export const baton: Client = createClient({ timeout: "5s" });
        export async function status(client: Client): Promise<"queued" | "completed" | null> {
          const { status } = await client.job("x");
          // @ts-expect-error: no status has this name
          if (status === "nosuch") return null;
          return status === "queued" || status === "completed" ? status : null;
        }
        export const isKnown = (error: unknown): boolean => error instanceof BatonError;`;
      const files = ["typed.mts", "typed.cts"];
      for (const file of files) writeFileSync(join(cwd, file), code);
      const compilerOptions = {
        ...options,
        strict: true,
        noEmit: true,
        types: ["node"],
        skipLibCheck: false,
      };
      writeFileSync(join(cwd, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
      run(join(tools, "tsc"), ["--singleThreaded"], cwd);
    }
  });

  it("has nothing that publint and attw complain of", () => {
    for (const [name, cwd] of [
      ["batonjs", project],
      ["batonjs-client", clientProject],
    ] as const) {
      run(join(tools, "publint"), ["--strict", join(cwd, "node_modules", name)], directory);
    }
    const attw = (tarball: string, ...args: readonly string[]): string =>
      run(join(tools, "attw"), [tarball, "--no-emoji", ...args], directory);
    // A node is an ES module, which Node 24 can require; the client is both. Neither is for resolvers without `exports`.
    attw(tarballs.batonjs, "--profile", "esm-only", "--exclude-entrypoints", "client");
    attw(tarballs.batonjs, "--profile", "node16", "--entrypoints", "client");
    attw(tarballs["batonjs-client"]);
  });
});

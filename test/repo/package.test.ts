import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { pack } from "../../scripts/pack.ts";
import { script } from "../support/process.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

interface Manifest {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly [key: string]: unknown;
}

function manifestAt(path: string): Manifest {
  return JSON.parse(readFileSync(path, "utf8")) as Manifest;
}

/**
 * The package as somebody has it who installed it: out of the real tarball, below node_modules (where Node strips no
 * types), with the dependencies that it declares and no others.
 */
describe("the package", () => {
  const directory = mkdtempSync(join(tmpdir(), "baton-package-"));
  const installed = join(directory, "node_modules", "batonjs");
  const bin = join(installed, "bin", "baton.mjs");
  after(() => rmSync(directory, { recursive: true, force: true }));

  before(() => {
    const built = join(directory, "built");
    pack(built);
    const tarball = run("npm", ["pack", built, "--silent"]).trim();
    mkdirSync(installed, { recursive: true });
    run("tar", ["-xzf", tarball, "-C", installed, "--strip-components=1"]);
    rmSync(built, { recursive: true });
    for (const name of Object.keys(manifestAt(join(installed, "package.json")).dependencies)) link(name);
    writeFileSync(join(directory, "package.json"), '{ "type": "module" }');
  });

  function run(command: string, args: readonly string[]): string {
    const { status, stdout, stderr } = spawnSync(command, args, { cwd: directory, encoding: "utf8" });
    assert.equal(status, 0, `${command} ${args.join(" ")}: ${stdout}${stderr}`);
    return stdout;
  }

  function link(name: string): void {
    const place = join(directory, "node_modules", name);
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(join(root, "node_modules", name), place);
  }

  function filesIn(folder: string): string[] {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => name);
  }

  it("carries no TypeScript but declarations and the template of a project, no tests, and no runtime of its own", () => {
    const manifest = manifestAt(join(installed, "package.json"));
    assert.equal(manifest["devDependencies"], undefined);
    assert.equal(manifest["optionalDependencies"], undefined);
    assert.equal(manifest["scripts"], undefined);
    const files = readdirSync(installed, { recursive: true, encoding: "utf8" });
    const odd = files
      .filter((file) => !/^template\b/.test(file))
      .filter((file) => /(?<!\.d)\.ts$|\.test\.|^(?:test|bench|src)\b/.test(file));
    assert.deepEqual(odd, []);
    for (const name of ["README.md", "LICENSE", "CHANGELOG.md"]) assert.ok(existsSync(join(installed, name)));
  });

  it("tells its version", async () => {
    await using baton = script(bin, ["--version"], { cwd: directory });
    const { code, out, err } = await baton.ended;
    assert.equal(code, 0, err);
    assert.equal(out.trim(), manifestAt(join(root, "package.json")).version);
  });

  it("creates a project out of all files of the template", async () => {
    // Below a folder that nobody takes for one of tasks.
    const project = join(directory, "_projects", "my-jobs");
    await using init = script(bin, ["init", project], { cwd: directory });
    const { code, err } = await init.ended;
    assert.equal(code, 0, err);
    const created = filesIn(project);
    assert.equal(created.length, filesIn(join(root, "template")).length, created.join(" "));
    assert.ok(created.includes(".gitignore") && created.includes("package.json"), created.join(" "));
  });

  it("runs jobs of JavaScript tasks, on the main thread and on one of their own", async () => {
    const tasks = join(directory, "tasks");
    mkdirSync(tasks);
    writeFileSync(join(tasks, "add.js"), "export default ({ a, b }) => a + b;");
    writeFileSync(
      join(tasks, "times.js"),
      `import { isMainThread } from "node:worker_threads";
       export const isolation = "thread";
       export default ({ a, b }) => ({ product: a * b, isMainThread });`,
    );
    const args = ["start", "--tasks", tasks, "--data", join(directory, "data"), "--port", "0"];
    await using node = script(bin, args, { cwd: directory });
    const [, url] = await node.told(/listening on (\S+)/);
    const results = [];
    for (const task of ["add", "times"]) {
      const submit = ["submit", task, '{"a":6,"b":7}', "--wait", "--url", url!];
      await using caller = script(bin, submit, { cwd: directory });
      const { code, out, err } = await caller.ended;
      assert.equal(code, 0, err);
      results.push(JSON.parse(out));
    }
    assert.deepEqual(results, [13, { product: 42, isMainThread: false }]);
    const page = await (await fetch(`${url}/`)).text();
    const asset = /src="\.\/(assets\/[^"]+\.js)"/.exec(page)?.[1];
    assert.ok(asset, `the dashboard came along: ${page}`);
    assert.equal((await fetch(`${url}/${asset}`)).status, 200);
    assert.equal((await node.terminate()).code, 0);
  });

  it("says in one line which driver to install, where a server is used without one", async () => {
    const args = [
      "start",
      "--tasks",
      directory,
      "--store",
      "postgres://nobody@127.0.0.1:1/none",
      "--port",
      "0",
    ];
    await using node = script(bin, args, { cwd: directory });
    const { code, err } = await node.ended;
    assert.equal(code, 78, err);
    assert.match(err, /a store on PostgreSQL needs the package pg, .*type: npm install "pg@/);
    assert.doesNotMatch(err, /\n\s+at /);
  });

  it("can be imported, whole or only its client", async () => {
    const file = join(directory, "user.js");
    writeFileSync(
      file,
      `import { createNode, defineTask, isFinal } from "batonjs";
       import { createClient } from "batonjs/client";
       const shout = defineTask({ name: "shout", run: (text) => text.toUpperCase() });
       await using node = await createNode({ store: "memory", tasks: [shout], http: { port: 0 } });
       await node.start();
       await using client = createClient({ urls: node.url });
       const { id } = await client.submit("shout", "it works");
       console.log(await client.wait(id), isFinal("completed"));`,
    );
    await using user = script(file, [], { cwd: directory });
    const { code, out, err } = await user.ended;
    assert.equal(code, 0, err);
    assert.equal(out, "IT WORKS true\n");
  });

  it("runs jobs where an SDK of OpenTelemetry is registered with an API that it does not find, and says so once", async () => {
    const file = join(directory, "untraced.js");
    writeFileSync(
      file,
      `import { createNode, defineTask } from "batonjs";
       globalThis[Symbol.for("opentelemetry.js.api.1")] = { version: "1.10.0", trace: {} };
       const shout = defineTask({ name: "shout", run: (text) => text.toUpperCase() });
       await using node = await createNode({ store: "memory", tasks: [shout] });
       await node.start();
       for (const text of ["it", "works"]) console.log(await (await node.submit(shout, text)).result());`,
    );
    await using user = script(file, [], { cwd: directory });
    const { code, out, err } = await user.ended;
    assert.equal(code, 0, err);
    assert.equal(out, "IT\nWORKS\n");
    assert.equal(err.match(/npm install "@opentelemetry\/api@/g)?.length, 1, err);
  });

  it("mounts its dashboard in Fastify and Express", async () => {
    link("express");
    const file = join(directory, "mounted.js");
    writeFileSync(
      file,
      `import { createNode } from "batonjs";
       import { dashboard } from "batonjs/express";
       import { batonDashboard } from "batonjs/fastify";
       import express from "express";
       import Fastify from "fastify";
       const baton = await createNode({ store: "memory" });
       await baton.start();
       const pages = async (url) => {
         const page = await (await fetch(url)).text();
         const script = page.split('src="./')[1].split('"')[0];
         console.log((await fetch(new URL(script, url + "/"))).status);
       };
       const app = Fastify();
       app.register(batonDashboard, { prefix: "/jobs", baton });
       await pages((await app.listen({ port: 0, host: "127.0.0.1" })) + "/jobs");
       await app.close();
       const server = express().use("/jobs", dashboard(baton)).listen(0, "127.0.0.1");
       await new Promise((resolve) => server.once("listening", resolve));
       await pages("http://127.0.0.1:" + server.address().port + "/jobs");
       await baton.stop();
       server.close();`,
    );
    await using user = script(file, [], { cwd: directory });
    const { code, out, err } = await user.ended;
    assert.equal(code, 0, err);
    assert.equal(out, "200\n200\n");
  });

  it("has a node for tests", async () => {
    const file = join(directory, "tested.js");
    writeFileSync(
      file,
      `import { defineTask } from "batonjs/task";
       import { testNode } from "batonjs/testing";
       const shout = defineTask({ name: "shout", run: (text) => text.toUpperCase() });
       await using baton = await testNode({ tasks: [shout] });
       await baton.submit(shout, "it works", { delay: "1h" });
       await baton.advance("1h");
       console.log((await baton.jobs())[0].result);`,
    );
    await using user = script(file, [], { cwd: directory });
    const { code, out, err } = await user.ended;
    assert.equal(code, 0, err);
    assert.equal(out, "IT WORKS\n");
  });

  it("gives its types to those who compile against it", () => {
    link("@types/node");
    link("zod");
    const options = { module: "nodenext", target: "es2024", lib: ["es2024", "esnext.disposable"] };
    const strict = { strict: true, noEmit: true, types: ["node"], skipLibCheck: false };
    const config = { compilerOptions: { ...options, ...strict }, files: ["typed.ts"] };
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(config));
    writeFileSync(
      join(directory, "typed.ts"),
      `import { createNode, defineTask } from "batonjs";
       import type { TaskContext } from "batonjs";
       import { createClient } from "batonjs/client";
       import { dashboard } from "batonjs/express";
       import { batonDashboard } from "batonjs/fastify";
       import { openTelemetry } from "batonjs/otel";
       import Fastify from "fastify";
       import { z } from "zod";
       const double = defineTask({
         name: "double",
         schema: z.object({ n: z.number() }),
         run: ({ n }, { progress }: TaskContext) => { progress(50); return n * 2; },
       });
       const node = await createNode({ tasks: [double] });
       const client = createClient<{ double: typeof double }>({ urls: node.url! });
       const twice: number = await client.call("double", { n: 21 });
       // @ts-expect-error: there is no such task
       await client.call("triple", { n: 21 });
       const { status, createdAt } = await client.job("x");
       const at: Date = createdAt;
       Fastify().register(batonDashboard, { prefix: "/jobs", baton: node, authenticate: ({ ip }) => ip === "::1" && "read" });
       dashboard(node, { authenticate: async () => ({ name: "ann", permission: "admin" }) });
       // @ts-expect-error: there is no such permission
       dashboard(node, { authenticate: () => "root" });
       // @ts-expect-error: a part of the API is not enough
       openTelemetry({ trace: {} });
       // @ts-expect-error: a payload is typed by its schema, and this one has no such field
       defineTask({ name: "wrong", schema: z.object({ n: z.number() }), run: ({ m }) => m });
       console.log(twice, status, at);`,
    );
    const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
    run(process.execPath, [tsc, "--singleThreaded", "--project", directory]);
  });
});

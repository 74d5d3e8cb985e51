import assert from "node:assert/strict";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { loadTaskFolder } from "../../../../src/jobs/tasks/task-folder.ts";
import type { TaskContext } from "../../../../src/jobs/tasks/task.ts";
import { nodeHere, resultOf, submit, temporaryDirectory } from "../../../support/node-here.ts";
import { column } from "../../../support/columns.ts";

async function folder(t: TestContext, files: Readonly<Record<string, string>>): Promise<string> {
  const dir = await temporaryDirectory(t);
  // Else the kind of a .js file would be what a package.json above the directory says.
  for (const [name, text] of Object.entries({ "package.json": "{}", ...files })) {
    await mkdir(dirname(join(dir, name)), { recursive: true });
    await writeFile(join(dir, name), text);
  }
  return dir;
}

const NOTHING = {} as TaskContext;

describe("a task folder", () => {
  it("gives a task for each module, named like its file, in every kind of JavaScript and TypeScript", async (t) => {
    const dir = await folder(t, {
      "a.ts": "export default async (n: number): Promise<number> => n + 1;",
      "b.mjs": "export default (n) => n * 2;",
      "c.mts": "const add = (n: number): number => n + 3; export default add;",
      "d.cjs": "module.exports = (n) => n - 1;",
      "mail.send.js": "module.exports = () => 'sent';",
    });
    const tasks = await loadTaskFolder(dir);
    assert.deepEqual(column(tasks, "name"), ["a", "b", "c", "d", "mail.send"]);
    assert.deepEqual(await Promise.all(tasks.map((task) => task.run(10, NOTHING))), [11, 20, 13, 9, "sent"]);
    assert.ok(tasks.every(({ module }) => module?.startsWith("file:///")));
  });

  it("takes options from the module's other exports", async (t) => {
    const dir = await folder(t, {
      "mail.mjs": `export const queue = "mail", priority = 7, timeout = "90s";
        export const retry = { attempts: 9, delay: "5s" };
        export const isolation = "thread";
        export default () => {};`,
    });
    const [task] = await loadTaskFolder(dir);
    const { queue, priority, timeout, retry, isolation } = task!;
    assert.deepEqual(
      { queue, priority, timeout, retry, isolation },
      {
        queue: "mail",
        priority: 7,
        timeout: "90s",
        retry: { attempts: 9, delay: "5s" },
        isolation: "thread",
      },
    );
  });

  it("takes a whole task as the default export, also one whose methods use each other", async (t) => {
    const dir = await folder(t, {
      "plain.mjs": `export default { name: "plain", queue: "q", run: () => 1 };`,
      "object.mjs": `class Base { name = "object"; run(n) { return this.double(n); } double(n) { return 2 * n; } }
        export default new Base();`,
    });
    const [object, plain] = await loadTaskFolder(dir);
    assert.equal(await object!.run(21, NOTHING), 42);
    assert.equal(plain!.queue, "q");
  });

  it("passes over what is not meant as a task", async (t) => {
    const dir = await folder(t, {
      "real.mjs": "export default () => {};",
      "_private.mjs": "throw new Error('not to be loaded');",
      ".hidden.mjs": "throw new Error('not to be loaded');",
      "types.d.ts": "export type A = 1;",
      "real.test.ts": "throw new Error('not to be loaded');",
      "README.md": "# tasks",
      "data.json": "{}",
      "_lib/shared.mjs": "throw new Error('not to be loaded');",
      ".cache/old.mjs": "throw new Error('not to be loaded');",
      "node_modules/dependency/index.js": "throw new Error('not to be loaded');",
    });
    await mkdir(join(dir, "deeper.mjs"));
    assert.deepEqual(column(await loadTaskFolder(dir), "name"), ["real"]);
  });

  it("gives the tasks of a sub-folder its name, however deep, and follows links without end once", async (t) => {
    const dir = await folder(t, {
      "mail.mjs": "export default () => 'mail';",
      "mail/welcome.ts": "export default (name: string) => `welcome ${name}`;",
      "mail/bulk/weekly.mjs": `export default { name: "mail/bulk/weekly", run: () => "weekly" };`,
    });
    await symlink(dir, join(dir, "mail", "again"), "dir");
    const tasks = await loadTaskFolder(dir);
    assert.deepEqual(column(tasks, "name"), ["mail", "mail/bulk/weekly", "mail/welcome"]);
    assert.equal(await tasks[2]!.run("ada", NOTHING), "welcome ada");
    const wrong = await folder(t, { "mail/welcome.mjs": "export default { name: 'welcome', run() {} };" });
    await assert.rejects(loadTaskFolder(wrong), { message: /exports a task named "welcome"; give file/ });
    const spaced = await folder(t, { "my mail/welcome.mjs": "export default () => {};" });
    await assert.rejects(loadTaskFolder(spaced), { message: /its path below the folder is the name/ });
  });

  it("may be of a CommonJS project, compiled or in TypeScript with import and export", async (t) => {
    const dir = await folder(t, {
      "package.json": '{ "type": "commonjs" }',
      "_lib/greeting.ts": "export const greeting: string = 'hello';",
      "typed.ts": `import { greeting } from "./_lib/greeting.ts";
export const queue = "typed";
export default async (name: string) => \`\${greeting} \${name}\`;`,
      "required.ts": `import type { Handler } from "nowhere";
const { greeting } = require("./_lib/greeting.ts");
module.exports = async (name: string) => greeting + name;`,
      "compiled.js": `"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.queue = "compiled";
exports.default = async (name) => "compiled " + name;`,
      "plain.js": "module.exports = (name) => name; module.exports.queue = 'plain';",
      "whole.js": "module.exports = { name: 'whole', queue: 'whole', run: (name) => name };",
    });
    const tasks = await loadTaskFolder(dir);
    assert.deepEqual(
      tasks.map(({ name, queue }) => [name, queue]),
      [
        ["compiled", "compiled"],
        ["plain", "plain"],
        ["required", undefined],
        ["typed", "typed"],
        ["whole", "whole"],
      ],
    );
    const results = await Promise.all(tasks.map((task) => task.run("ada", NOTHING)));
    assert.deepEqual(results, ["compiled ada", "ada", "helloada", "hello ada", "ada"]);
  });

  it("of a CommonJS project runs on threads too", async (t) => {
    const dir = await folder(t, {
      "package.json": '{ "type": "commonjs" }',
      "deep/typed.ts": `export const isolation = "thread";
export default (n: number) => n + 1;`,
      "compiled.js": `exports.__esModule = true; exports.isolation = "thread"; exports.default = (n) => n * 2;`,
    });
    const node = await nodeHere(t, { settings: { TASKS: dir } });
    assert.equal(await resultOf(node, await submit(node, "deep/typed", { payload: 10 })), 11);
    assert.equal(await resultOf(node, await submit(node, "compiled", { payload: 10 })), 20);
  });

  it("says what to do about a file of another kind than its project", async (t) => {
    const es = await folder(t, {
      "package.json": '{ "type": "commonjs" }',
      "a.js": "export default () => {};",
    });
    await assert.rejects(loadTaskFolder(es), { message: /"commonjs": write module\.exports/ });
    const kinds = await folder(t, { "a.ts": "enum Kind { A }\nexport default () => Kind.A;" });
    await assert.rejects(loadTaskFolder(kinds), { message: /compile this file to JavaScript/ });
  });

  it("says what is wrong with a file, and which one it is", async (t) => {
    const cases: [file: string, text: string, message: RegExp][] = [
      ["no-default.mjs", "export const run = () => {};", /default export must be a task/],
      ["number.mjs", "export default 42;", /default export must be a task/],
      ["broken.mjs", "export default (", /could not be loaded: /],
      ["throws.mjs", "throw new Error('no database');", /could not be loaded: no database/],
      [
        "needs.mjs",
        "import 'not-installed'; export default () => {};",
        /could not be loaded: .*not-installed/,
      ],
      [
        "other.mjs",
        "export default { name: 'another', run() {} };",
        /task named "another"; give file and task one/,
      ],
      ["bad name.mjs", "export default () => {};", /its name is not fit for a task/],
      [
        "fork.mjs",
        "export const isolation = 'process'; export default () => {};",
        /isolation must be "none" or/,
      ],
      [
        "zero.mjs",
        "export const retry = { attempts: 0 }; export default () => {};",
        /retry\.attempts must be .*from 1 to 1000, not 0/,
      ],
      [
        "unit.mjs",
        "export const timeout = '5'; export default () => {};",
        /timeout needs a unit: write 5s or 5ms, not 5/,
      ],
      [
        "high.mjs",
        "export const priority = 1000; export default () => {};",
        /priority must be .*from -100 to 100/,
      ],
      ["queue.mjs", "export const queue = 'my queue'; export default () => {};", /queue must be letters/],
      [
        "schema.mjs",
        "export const schema = { type: 'object' }; export default () => {};",
        /schema must be a Standard/,
      ],
      [
        "retry.mjs",
        "export const retry = { factor: 0.5 }; export default () => {};",
        /retry\.factor must be a number from 1/,
      ],
      [
        "typo.mjs",
        "export const retry = { dellay: 5 }, priority = 1000; export default () => {};",
        /priority must be .*; task typo: "dellay" is not a known option of retry; did you mean "delay"\?/,
      ],
    ];
    for (const [file, text, message] of cases) {
      const dir = await folder(t, { [file]: text });
      await assert.rejects(loadTaskFolder(dir), { code: "BAD_TASK", message }, file);
    }
  });

  it("that is not there is refused with the setting to look at", async (t) => {
    const dir = await temporaryDirectory(t);
    await assert.rejects(loadTaskFolder(join(dir, "missing")), {
      code: "BAD_TASK",
      message: /there is no folder .*missing.*--tasks/,
    });
    await writeFile(join(dir, "file"), "");
    await assert.rejects(loadTaskFolder(join(dir, "file")), { code: "BAD_TASK" });
  });

  it("may not have two tasks of one name, in one folder or in two", async (t) => {
    const text = "export default () => {};";
    const both = await folder(t, { "same.mjs": text, "same.ts": text });
    await assert.rejects(nodeHere(t, { settings: { TASKS: both } }), {
      code: "BAD_TASK",
      message: /two tasks are named same: .*same\.mjs and .*same\.ts; rename one of them, or remove it/,
    });
    const [one, two] = [await folder(t, { "same.mjs": text }), await folder(t, { "same.mjs": text })];
    await assert.rejects(nodeHere(t, { settings: { TASKS: `${one},${two}` } }), { code: "BAD_TASK" });
  });

  it("of a sub-folder is called, listed and counted under its whole name", async (t) => {
    const dir = await folder(t, { "mail/welcome.mjs": "export default (name) => `welcome ${name}`;" });
    const node = await nodeHere(t, { http: true, settings: { TASKS: dir } });
    const call = await fetch(`${node.url}/functions/mail%2Fwelcome`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify("ada"),
    });
    assert.equal(((await call.json()) as { result: unknown }).result, "welcome ada");
    const jobs = await fetch(`${node.url}/cluster/jobs?task=mail/welcome`);
    const { items } = (await jobs.json()) as { items: { task: string }[] };
    assert.deepEqual(column(items, "task"), ["mail/welcome"]);
    const metrics = await (await fetch(`${node.url}/metrics`)).text();
    assert.match(metrics, /^baton_jobs_finished_total\{.*task="mail\/welcome".*\} 1$/m);
  });

  it("serves a node: its tasks run, with their defaults", async (t) => {
    const dir = await folder(t, {
      "greet.ts": `export const queue = "greetings";
        export const retry = { attempts: 7 };
        export default async (payload: { name: string }, { job }: { job: { queue: string } }) =>
          \`hello \${payload.name} from \${job.queue}\`;`,
    });
    const node = await nodeHere(t, { settings: { TASKS: dir } });
    const id = await submit(node, "greet", { payload: { name: "ada" } });
    assert.equal(await resultOf(node, id), "hello ada from greetings");
    const job = await node.services.jobs.get(id);
    assert.deepEqual([job?.queue, job?.maxAttempts], ["greetings", 7]);
    assert.deepEqual(node.tasks(), [{ name: "greet", isolation: "none", hasSchema: false, schema: null }]);
  });
});

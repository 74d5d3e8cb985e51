import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { loadTaskFolder } from "../../../../src/jobs/tasks/task-folder.ts";
import type { TaskContext } from "../../../../src/jobs/tasks/task.ts";
import { nodeHere, resultOf, submit, temporaryDirectory } from "../../../support/node-here.ts";
import { column } from "../../../support/columns.ts";

async function folder(t: TestContext, files: Readonly<Record<string, string>>): Promise<string> {
  const dir = await temporaryDirectory(t);
  // Else the kind of a .js file would be what a package.json above the directory says.
  for (const [name, text] of Object.entries({ "package.json": "{}", ...files }))
    await writeFile(join(dir, name), text);
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
    });
    await mkdir(join(dir, "deeper.mjs"));
    await mkdir(join(dir, "lib"));
    await writeFile(join(dir, "lib", "shared.mjs"), "throw new Error('not to be loaded');");
    assert.deepEqual(column(await loadTaskFolder(dir), "name"), ["real"]);
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
      message: /two tasks are named same/,
    });
    const [one, two] = [await folder(t, { "same.mjs": text }), await folder(t, { "same.mjs": text })];
    await assert.rejects(nodeHere(t, { settings: { TASKS: `${one},${two}` } }), { code: "BAD_TASK" });
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

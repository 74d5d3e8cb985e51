/**
 * Loads the modules of a folder as tasks, named after their files; a sub-folder is a namespace (`mail/welcome.ts` is `mail/welcome`).
 * Skips tests, declarations, `node_modules`, and files and folders whose names begin with . or _.
 */

import { readdir, realpath, stat } from "node:fs/promises";
import { extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { BatonError, reasonOf } from "../../core/errors.ts";
import { THING_NAME } from "../../core/ids.ts";
import { badTask, checkTask, type Handler, type Task, type TaskOptions } from "./task.ts";
import { importTaskModule, isCommonJsPackage } from "./task-module.ts";

const MODULE = /\.(?:[cm]?js|[cm]?ts)$/;
const NOT_A_TASK = /^[._]|^node_modules$|\.d\.[cm]?ts$|\.test\.[cm]?[jt]s$/;

export async function loadTaskFolder(dir: string): Promise<Task[]> {
  const folder = resolve(dir);
  const found = await stat(folder).catch(() => null);
  if (!found?.isDirectory())
    throw badTask(`there is no folder ${folder} to load tasks from; check --tasks`, "tasks");
  const tasks: Task[] = [];
  for (const path of await modulesIn(folder)) tasks.push(await loadTaskModule(folder, path));
  return tasks;
}

/** Paths below the folder, with `/` on every system. `above`: real paths of the folders on the way, against links in a circle. */
async function modulesIn(folder: string, below = "", above: readonly string[] = []): Promise<string[]> {
  const real = await realpath(folder);
  if (above.includes(real)) return [];
  const paths: string[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const { name } = entry;
    if (NOT_A_TASK.test(name)) continue;
    const path = `${below}${name}`;
    const linked = entry.isSymbolicLink() ? await stat(join(folder, name)).catch(() => null) : entry;
    if (linked?.isDirectory())
      paths.push(...(await modulesIn(join(folder, name), `${path}/`, [...above, real])));
    else if (MODULE.test(name)) paths.push(path);
  }
  return paths.sort();
}

interface TaskModule extends TaskOptions {
  readonly default?: unknown;
  readonly schema?: Task["schema"];
}

/** The default export is a task, or a plain handler whose options are the module's other exports. */
async function loadTaskModule(folder: string, path: string): Promise<Task> {
  const file = resolve(folder, path);
  const name = path.slice(0, -extname(path).length);
  const module = pathToFileURL(file).href;
  if (!THING_NAME.test(name)) {
    const rule = "its path below the folder is the name of the task: use letters, digits and . _ -";
    throw broken(file, `its name is not fit for a task: ${rule}, at most 128 characters`);
  }
  let loaded: TaskModule;
  try {
    loaded = await importTaskModule(module);
  } catch (error) {
    throw broken(file, `it could not be loaded: ${reasonOf(error)}${remedyFor(error, module)}`, error);
  }
  const { default: exported, schedules } = loaded;
  if (typeof exported === "function") {
    const { schema, isolation, retry, timeout, queue, priority } = loaded;
    const options = { schema, isolation, retry, timeout, queue, priority };
    return checked(file, { ...options, name, module, run: exported as Handler }, schedules);
  }
  if (exported !== null && typeof exported === "object" && "run" in exported) {
    const task = exported as Task;
    if (task.name !== name)
      throw broken(file, `it exports a task named ${JSON.stringify(task.name)}; give file and task one name`);
    checkTask(task);
    // Its own `this`: a task may be an object with methods.
    const run: Handler = (payload, context) => task.run(payload, context);
    return checked(file, { ...task, run, module }, schedules);
  }
  const remedy = "a module that is no task belongs into a file or a folder whose name begins with _";
  throw broken(
    file,
    `its default export must be a task (defineTask) or an async function (payload, context) => result; ${remedy}`,
  );
}

function checked(file: string, task: Task, schedules: unknown): Task {
  if (schedules === undefined) {
    checkTask(task);
    return task;
  }
  if (task.schedules !== undefined)
    throw broken(file, "its schedules stand in the task and in `export const schedules`; keep one of them");
  const whole = { ...task, schedules } as Task;
  checkTask(whole);
  return whole;
}

/** Node's errors tell what it stumbled over, and not what to do about it. */
function remedyFor(error: unknown, module: string): string {
  if ((error as { code?: unknown } | null)?.code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX")
    return "; Node only removes types: compile this file to JavaScript, or do without this syntax";
  if (error instanceof SyntaxError && module.endsWith(".js") && isCommonJsPackage(module))
    return '; its package.json says "type": "commonjs": write module.exports = …, or name the file .mjs';
  return "";
}

function broken(file: string, why: string, cause?: unknown): BatonError {
  return new BatonError("BAD_TASK", `task file ${file}: ${why}`, { field: "tasks", file }, { cause });
}

/** Loads the modules of a folder as tasks, named after their files. Skips tests, declarations, and names that begin with . or _. */

import { readdir, stat } from "node:fs/promises";
import { basename, extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { BatonError, reasonOf } from "../../core/errors.ts";
import { THING_NAME } from "../../core/ids.ts";
import { badTask, checkTask, type Handler, type Task, type TaskOptions } from "./task.ts";

const MODULE = /\.(?:[cm]?js|[cm]?ts)$/;
const NOT_A_TASK = /^[._]|\.d\.[cm]?ts$|\.test\.[cm]?[jt]s$/;

export async function loadTaskFolder(dir: string): Promise<Task[]> {
  const folder = resolve(dir);
  const found = await stat(folder).catch(() => null);
  if (!found?.isDirectory())
    throw badTask(`there is no folder ${folder} to load tasks from; check --tasks`, "tasks");
  const entries = (await readdir(folder, { withFileTypes: true })).filter((entry) => !entry.isDirectory());
  const files = entries.map(({ name }) => name).filter((file) => MODULE.test(file) && !NOT_A_TASK.test(file));
  const tasks: Task[] = [];
  for (const file of files.sort()) tasks.push(await loadTaskModule(resolve(folder, file)));
  return tasks;
}

interface TaskModule extends TaskOptions {
  readonly default?: unknown;
  readonly schema?: Task["schema"];
}

/** The default export is a task, or a plain handler whose options are the module's other exports. */
export async function loadTaskModule(file: string): Promise<Task> {
  const name = basename(file, extname(file));
  const module = pathToFileURL(file).href;
  if (!THING_NAME.test(name))
    throw broken(file, "its name is not fit for a task: use letters, digits and . _ -");
  let loaded: TaskModule;
  try {
    loaded = (await import(module)) as TaskModule;
  } catch (error) {
    throw broken(file, `it could not be loaded: ${reasonOf(error)}`, error);
  }
  const exported = loaded.default;
  if (typeof exported === "function") {
    const { schema, isolation, retry, timeout, queue, priority } = loaded;
    const options = { schema, isolation, retry, timeout, queue, priority };
    const task: Task = { ...options, name, module, run: exported as Handler };
    checkTask(task);
    return task;
  }
  if (exported !== null && typeof exported === "object" && "run" in exported) {
    const task = exported as Task;
    if (task.name !== name)
      throw broken(file, `it exports a task named ${JSON.stringify(task.name)}; give file and task one name`);
    checkTask(task);
    // Its own `this`: a task may be an object with methods.
    return { ...task, run: (payload, context) => task.run(payload, context), module };
  }
  throw broken(
    file,
    "its default export must be a task (defineTask) or an async function (payload, context) => result",
  );
}

function broken(file: string, why: string, cause?: unknown): BatonError {
  return new BatonError("BAD_TASK", `task file ${file}: ${why}`, { field: "tasks", file }, { cause });
}

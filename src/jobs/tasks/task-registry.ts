/** The tasks that a node or an agent can run, by name. */

import { fileURLToPath } from "node:url";
import { payloadSchema } from "./payload-schema.ts";
import { badTask, checkTask, type Task, type TaskSchedule } from "./task.ts";

export interface TaskInfo {
  readonly name: string;
  readonly isolation: "none" | "thread";
  readonly hasSchema: boolean;
  /** JSON Schema of the payload; null where there is none, or where it cannot be said in JSON Schema. */
  readonly schema: Readonly<Record<string, unknown>> | null;
}

export class TaskRegistry {
  readonly #tasks = new Map<string, Task>();
  readonly #names = new Set<string>();

  constructor(tasks: Iterable<Task> = []) {
    for (const task of tasks) this.add(task);
  }

  add(task: Task): void {
    checkTask(task);
    if (task.isolation === "thread" && !task.module) {
      const message = `task ${task.name} wants a thread: it needs module: import.meta.url, and must be that module's default export`;
      throw badTask(message, "module");
    }
    const known = this.#tasks.get(task.name);
    if (known) throw badTask(twice(known, task), "name");
    this.#tasks.set(task.name, task);
    this.#names.add(task.name);
  }

  get(name: string): Task | undefined {
    return this.#tasks.get(name);
  }

  all(): Iterable<Task> {
    return this.#tasks.values();
  }

  names(): ReadonlySet<string> {
    return this.#names;
  }

  /** That stand in the tasks, each with its task. */
  schedules(): (TaskSchedule & { readonly task: string })[] {
    return [...this.#tasks.values()].flatMap(({ name, schedules = [] }) =>
      schedules.map((schedule) => ({ ...schedule, task: name })),
    );
  }

  list(): TaskInfo[] {
    return [...this.#tasks.values()]
      .map((task) => ({
        name: task.name,
        isolation: task.isolation ?? ("none" as const),
        hasSchema: task.schema !== undefined,
        schema: payloadSchema(task.schema),
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}

/** Two files of one name are often a source and what a compiler made of it. */
function twice(known: Task, task: Task): string {
  if (known.module === undefined || task.module === undefined || known.module === task.module)
    return `two tasks are named ${task.name}; rename one of them`;
  const [one, other] = [known.module, task.module].map((module) =>
    module.startsWith("file:") ? fileURLToPath(module) : module,
  );
  return `two tasks are named ${task.name}: ${one} and ${other}; rename one of them, or remove it`;
}

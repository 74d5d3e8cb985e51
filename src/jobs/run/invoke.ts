import type { JobRun } from "./job-run.ts";
import type { Task } from "../tasks/task.ts";
import type { ThreadPool } from "./thread-pool.ts";

/** Calls the handler, here or on a thread, inside the span of its run if there is one. */
export function invoke(task: Task, payload: unknown, run: JobRun, threads: Pick<ThreadPool, "run">): unknown {
  if (run.span) return run.span.run(() => call(task, payload, run, threads));
  return call(task, payload, run, threads);
}

function call(task: Task, payload: unknown, run: JobRun, threads: Pick<ThreadPool, "run">): unknown {
  return task.isolation === "thread" ? threads.run(task, payload, run) : task.run(payload, run);
}

/** What a handler gives back may be a promise of anybody's making. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

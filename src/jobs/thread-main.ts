/** Runs on a worker thread: imports task modules and runs one job at a time. */

import { parentPort } from "node:worker_threads";
import { JobAborted } from "./job-run.ts";
import { toJobError } from "./outcome.ts";
import type { Handler, Task, TaskContext } from "./task.ts";
import type { FromThread, ToThread } from "./thread-messages.ts";
import type { LogLevel } from "../store/store.ts";

const port = parentPort!;
let controller = new AbortController();

const say = (message: FromThread): void => port.postMessage(message);

port.on("message", (message: ToThread) => {
  if (message.say === "abort") controller.abort(new JobAborted(message.why, message.message));
  else void run(message);
});

async function run(order: Extract<ToThread, { say: "run" }>): Promise<void> {
  controller = new AbortController();
  const { signal } = controller;
  try {
    const loaded = (await import(order.module)) as { default: Task | Handler };
    const handler = typeof loaded.default === "function" ? loaded.default : loaded.default.run;
    const result = await handler(order.payload, context(order, signal));
    say({ say: "returned", result: result === undefined ? "null" : (JSON.stringify(result) ?? "null") });
  } catch (error) {
    const retryable = !(
      typeof error === "object" &&
      error !== null &&
      "retryable" in error &&
      error.retryable === false
    );
    say({ say: "threw", error: toJobError(error), retryable, aborted: error instanceof JobAborted });
  }
}

function context(order: Extract<ToThread, { say: "run" }>, signal: AbortSignal): TaskContext {
  const log = (message: unknown, level: LogLevel = "info"): void =>
    say({ say: "log", level, message: String(message) });
  const leveled = (level: LogLevel) => (message: string) => log(message, level);
  const levels = {
    debug: leveled("debug"),
    info: leveled("info"),
    warn: leveled("warn"),
    error: leveled("error"),
  };
  return {
    signal,
    log: Object.assign(log, levels),
    progress: (percent, message) => say({ say: "progress", percent, message: message ?? null }),
    job: order.job,
    attempt: order.attempt,
  };
}

/** Runs on a worker thread: imports task modules and runs one job at a time. */

import { parentPort } from "node:worker_threads";
import type { LogLevel } from "../../store/store.ts";
import { JobAborted, progressOf, taskLog } from "./job-run.ts";
import { childJobs } from "./run-jobs.ts";
import { isAbort, mayTryAgain, resultText, retryAfterMs, toJobError } from "./run-outcome.ts";
import type { TaskContext } from "../tasks/task.ts";
import { importHandler } from "../tasks/task-module.ts";
import { ConsoleCapture } from "./console-capture.ts";
import type { FromThread, ThreadReport, ToThread } from "./thread-pool.ts";

type Order = Extract<ToThread, { say: "run" }>;

const port = parentPort!;
let current = { run: 0, controller: new AbortController() };
const captured = new ConsoleCapture();
captured.open();

port.on("message", (message: ToThread) => {
  if (message.say === "run") void run(message);
  else if (message.run === current.run)
    current.controller.abort(new JobAborted(message.why, message.message));
});

async function run(order: Order): Promise<void> {
  const controller = new AbortController();
  current = { run: order.run, controller };
  const say = (said: ThreadReport): void =>
    port.postMessage({ run: order.run, ...said } satisfies FromThread);
  const lines = {
    over: false,
    addLine: (level: LogLevel, message: string) => say({ say: "log", level, message }),
  };
  try {
    const handler = await importHandler(order.module);
    const given = context(order, controller.signal, say);
    const result = await captured.during(lines, handler, order.payload, given);
    say({ say: "returned", result: resultText(result) });
  } catch (error) {
    const retryable = mayTryAgain(error);
    const retryAfter = retryAfterMs(error);
    say({ say: "threw", error: toJobError(error), retryable, retryAfter, aborted: isAbort(error) });
  } finally {
    lines.over = true;
  }
}

function context(order: Order, signal: AbortSignal, say: (said: ThreadReport) => void): TaskContext {
  return {
    signal,
    log: taskLog((level, message) => say({ say: "log", level, message })),
    progress: (percent: unknown, message?: unknown) =>
      say({ say: "progress", ...progressOf(percent, message) }),
    job: order.job,
    attempt: order.attempt,
    traceparent: order.traceparent,
    ...childJobs(undefined, { id: order.job.id, trace: null, waiter: { signal, wait: (work) => work() } }),
  };
}

/** Threads for CPU-bound handlers, each with one job at a time, and reused. A thread that dies ends one run, never the node. */

import { Worker as Thread } from "node:worker_threads";
import type { Clock } from "../../platform/clock.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { JobRun } from "./job-run.ts";
import { toJobError } from "./run-outcome.ts";
import type { AbortReason, JobError } from "../../core/jobs/job.ts";
import type { LogLevel } from "../../store/store.ts";
import { fault, type Task, type TaskJob } from "../tasks/task.ts";

/** Resolved relative to this module, with its own ending: `.ts` in a checkout, `.js` in the published package. */
const ENTRY = new URL(
  import.meta.url.endsWith(".ts") ? "./thread-main.ts" : "./thread-main.js",
  import.meta.url,
);

export class ThreadPool extends Lifecycle {
  readonly #clock: Clock;
  readonly #abortGraceMs: number;
  readonly #idle: Thread[] = [];
  readonly #all = new Set<Thread>();
  #runs = 0;

  /** A thread that ignores an abort for `abortGraceMs` is ended by force. */
  constructor({ clock }: Pick<Platform, "clock">, abortGraceMs: number) {
    super();
    this.#clock = clock;
    this.#abortGraceMs = abortGraceMs;
  }

  get size(): number {
    return this.#all.size;
  }

  protected onStart(): void {}

  protected async onStop(): Promise<void> {
    this.#idle.length = 0;
    await Promise.all([...this.#all].map((thread) => thread.terminate()));
  }

  run(task: Task, payload: unknown, run: JobRun): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const thread = this.#idle.pop() ?? this.#spawn();
      const number = ++this.#runs;
      let endByForce: (() => void) | null = null;
      const onAbort = (): void => {
        const { why, message } = run.aborted!;
        post(thread, { say: "abort", run: number, why, message });
        endByForce = this.#clock.after(this.#abortGraceMs, () => void thread.terminate());
      };
      const done = (reuse: boolean): void => {
        endByForce?.();
        run.signal.removeEventListener("abort", onAbort);
        thread.off("message", onMessage);
        thread.off("error", onError);
        thread.off("exit", onExit);
        if (reuse && this.running) this.#idle.push(thread);
        else void thread.terminate();
      };
      const onMessage = (message: FromThread): void => {
        if (message.run !== number) return;
        switch (message.say) {
          case "log":
            return run.addLine(message.level, message.message);
          case "progress":
            return run.progress(message.value, message.message);
          case "returned":
            done(true);
            return resolve(JSON.parse(message.result));
          case "threw":
            done(true);
            return reject((message.aborted && run.aborted) || thrown(message));
        }
      };
      const onError = (error: unknown): void => {
        done(false);
        reject(threadDied(`died of an error that nobody caught: ${toJobError(error).message}`));
      };
      const onExit = (code: number): void => {
        done(false);
        reject(run.aborted ?? threadDied(`ended with exit code ${code}`));
      };
      thread.on("message", onMessage);
      thread.on("error", onError);
      thread.on("exit", onExit);
      run.signal.addEventListener("abort", onAbort, { once: true });
      const { job, attempt, traceparent } = run;
      try {
        post(thread, { say: "run", run: number, module: task.module!, payload, job, attempt, traceparent });
      } catch (error) {
        done(true);
        // Its schema made something of it that threads cannot copy.
        const why = toJobError(error).message;
        return reject(fault("BAD_PAYLOAD", `the payload cannot be handed to a thread: ${why}`));
      }
      if (run.aborted) onAbort();
    });
  }

  #spawn(): Thread {
    const thread = new Thread(ENTRY);
    thread.unref(); // an idle thread must not keep the process alive
    this.#all.add(thread);
    thread.once("exit", () => {
      this.#all.delete(thread);
      const at = this.#idle.indexOf(thread);
      if (at >= 0) this.#idle.splice(at, 1);
    });
    // Without a listener an error of an idle thread would end the process.
    thread.on("error", () => {});
    return thread;
  }
}

function threadDied(how: string): Error {
  return fault("THREAD_DIED", `the thread that ran the handler ${how}`, true);
}

/** Messages between a thread and its pool. Each names its run: output of an earlier handler (a timer that logs) is not the current one's. */
export type ToThread =
  | {
      readonly say: "run";
      readonly run: number;
      readonly module: string;
      readonly payload: unknown;
      readonly job: TaskJob;
      readonly attempt: number;
      readonly traceparent: string | null;
    }
  | {
      readonly say: "abort";
      readonly run: number;
      readonly why: AbortReason;
      readonly message: string | null;
    };

export type FromThread = { readonly run: number } & ThreadReport;

export type ThreadReport =
  | { readonly say: "log"; readonly level: LogLevel; readonly message: string }
  | { readonly say: "progress"; readonly value: number; readonly message: string | null }
  /** As JSON text, so that what cannot be a result fails in the same way as on the main thread. */
  | { readonly say: "returned"; readonly result: string }
  | {
      readonly say: "threw";
      readonly error: JobError;
      readonly retryable: boolean;
      /** In ms; null unless the handler asked for it. */
      readonly retryAfter: number | null;
      readonly aborted: boolean;
    };

function post(thread: Thread, message: ToThread): void {
  thread.postMessage(message);
}

function thrown(message: Extract<FromThread, { say: "threw" }>): Error {
  const { error, retryable, retryAfter } = message;
  const again = retryAfter === null ? {} : { retryAfterMs: retryAfter };
  return Object.assign(fault(error.code, error.message, retryable), again, { stack: error.stack ?? "" });
}

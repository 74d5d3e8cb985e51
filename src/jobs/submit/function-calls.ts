/**
 * Runs a task for a caller that waits for the result. The call is a job like any other, in a queue that nodes with the role `function`
 * serve: it survives the node that received it. It has one attempt, because the caller can decide about another.
 */

import type { Jobs } from "../job-service.ts";
import type { SubmitOptions } from "./submitter.ts";
import type { JobId } from "../../core/ids.ts";
import { FUNCTIONS_QUEUE, isFinal, type Job } from "../../core/jobs/job.ts";
import { Deadline } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import type { KnownTasks } from "../tasks/known-tasks.ts";

export type FunctionAnswer =
  | { readonly ended: true; readonly job: Job; readonly result: string | null }
  /** The time was up first; the job goes on. */
  | { readonly ended: false; readonly id: JobId };

export interface Functions {
  /** How long a call waits for a caller who does not say: the setting `functions.timeout`. */
  readonly timeoutMs: number;
  call(
    task: string,
    payload: unknown,
    options: { readonly timeoutMs: number } & Pick<SubmitOptions, "trace">,
  ): Promise<FunctionAnswer>;
}

/** `closing` fires when the node drains: calls end then, and the answer says where to ask for the result. */
export function functionCalls(
  { clock }: Pick<Platform, "clock">,
  jobs: Jobs,
  timeoutMs: number,
  closing: () => AbortSignal,
  knownTasks: Pick<KnownTasks, "has" | "require">,
): Functions {
  return {
    timeoutMs,
    async call(task, payload, options) {
      // Nobody comes to run it while the caller waits.
      if (!knownTasks.has(task)) await knownTasks.require(task, { calls: true });
      const request = { task, payload, queue: FUNCTIONS_QUEUE, maxAttempts: 1, allowUnknown: true };
      const [submitted] = await jobs.submit([request], { trace: options.trace ?? null });
      const { id } = submitted!;
      using limit = new Deadline(clock, options.timeoutMs, closing());
      for await (const _ of jobs.changes(id, limit.signal)) {
        const job = await jobs.get(id);
        if (job && isFinal(job.status)) return { ended: true, job, result: await jobs.result(id) };
        if (!job) break;
      }
      return { ended: false, id };
    },
  };
}

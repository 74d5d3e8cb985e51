/** What a handler does with other jobs: submits them, and waits for them without a slot. */

import { createHash } from "node:crypto";
import { JobFailed } from "../../core/errors.ts";
import type { JobId } from "../../core/ids.ts";
import type { JobOptions } from "../../core/jobs/job-options.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Submitted } from "../../store/store.ts";
import { JobHandle, type HandleParts } from "../job-handle.ts";
import type { Jobs } from "../job-service.ts";
import { byObject, type SubmitRequest } from "../submit/submitter.ts";
import { optionFields, payloadText } from "../submit/check-request.ts";
import { fault, type ChildJobs } from "../tasks/task.ts";

export interface RunJobs {
  readonly jobs: Jobs;
  readonly clock: Clock;
  submit(request: SubmitRequest, trace: string | null): Promise<Submitted>;
}

export interface Parent {
  readonly id: JobId;
  readonly trace: string | null;
  readonly waiter: NonNullable<HandleParts["waiter"]>;
}

/** `known`: undefined where the worker has no store to submit to. */
export function childJobs(known: RunJobs | undefined, parent: Parent): ChildJobs {
  const calls = new Map<string, number>();

  async function submit(
    task: string | { readonly name: string },
    payload: unknown,
    options: JobOptions = {},
  ): Promise<JobHandle<any>> {
    if (!known)
      throw fault("NOT_AVAILABLE", "an agent and a thread cannot submit jobs; return what is to be done");
    const fields = optionFields(options);
    const request = typeof task === "string" ? { ...fields, task } : { ...fields, ...byObject(task) };
    const submitted = await known.submit({ ...request, payload }, parent.trace);
    return new JobHandle({ ...known, waiter: parent.waiter }, submitted);
  }

  /** The same call in a later run of the parent meets the job of the earlier one. */
  function keyOf(task: string, payload: unknown): string {
    const hash = createHash("sha256")
      .update(`${task}\n${payloadText(payload)}`)
      .digest("base64url");
    const times = (calls.get(hash) ?? 0) + 1;
    calls.set(hash, times);
    return `call:${parent.id}:${hash}:${times}`;
  }

  async function call(
    task: string | { readonly name: string },
    payload: unknown,
    options: JobOptions = {},
  ): Promise<any> {
    const idempotencyKey =
      options.idempotencyKey ?? keyOf(typeof task === "string" ? task : task.name, payload);
    const child = await submit(task, payload, { ...options, idempotencyKey });
    try {
      return await child.result();
    } catch (error) {
      // The failure of an earlier run of the parent: this one tries again.
      if (!child.existed || !(error instanceof JobFailed)) throw error;
      await child.retry();
      return await child.result();
    }
  }

  return { submit, call };
}

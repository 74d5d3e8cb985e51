/** Submits one job or many, all or none. This is the hot path: Ajv has validated the body before it runs. */

import { z } from "zod";
import { BatonError } from "../../../core/errors.ts";
import { jobId, uuidAt } from "../../../core/ids.ts";
import type { Submitted } from "../../../store/store.ts";
import { IdempotencyKey, Name, OPTIONAL_JOB_SCHEMAS } from "../../bodies/fields.ts";
import { Status } from "../../bodies/job-body.ts";
import { answer, operation } from "../../operation.ts";
import { fromWire, toWire } from "../../schema/to-wire.ts";
import { traceIn, type Inbound } from "../../../transport/hop-headers.ts";
import type { NodeServices } from "../../node-services.ts";
import type { SubmitRequest } from "../../../jobs/submit/submitter.ts";

export const JobRequestBody = z.strictObject({ task: Name, ...OPTIONAL_JOB_SCHEMAS });
export type JobRequestBody = z.input<typeof JobRequestBody>;

const fromBody = fromWire(JobRequestBody);

const JOBS_MAX = 10_000;

export const SubmittedBody = z.object({
  job_id: z.string(),
  status: Status,
  existed: z.boolean().describe("the idempotency key belongs to this job, and no other was made"),
});
export type SubmittedBody = z.output<typeof SubmittedBody>;
const submittedBody = toWire(SubmittedBody, { job_id: "id" });

export const submitJobs = operation("POST /jobs", {
  summary: "Submit one job, or an array of jobs of which all or none are taken",
  permission: "submit",
  target: { at: "any" },
  frequent: true,
  body: z.union([JobRequestBody, z.array(JobRequestBody).min(1).max(JOBS_MAX)]),
  replies: { 200: z.union([SubmittedBody, z.array(SubmittedBody)]) },
  places(_services, { body, headers }) {
    const role = "worker";
    if (Array.isArray(body)) {
      const tasks = [...new Set(body.map(({ task }) => task))];
      return { wants: { role, tasks }, key: null, jobs: body.length, prefersHere: false };
    }
    const header = headers["idempotency-key"];
    const key = body.idempotency_key ?? (typeof header === "string" ? header : null);
    return { wants: { role, tasks: [body.task] }, key, jobs: 1, prefersHere: false };
  },
  async handler(services, { body, headers, inbound }) {
    const header = headers["idempotency-key"];
    const trace = traceIn(headers);
    if (Array.isArray(body)) {
      if (header !== undefined) throw keyForMany();
      const jobs = body.map((job, index) => request(job, index));
      const submitted = await store(services, jobs, inbound, trace);
      return answer(200, submitted.map(submittedBody));
    }
    const one = request(header === undefined ? body : withKey(body, header), null);
    const submitted = await store(services, [one], inbound, trace);
    return answer(200, submittedBody(submitted[0]!));
  },
});

/**
 * A batch that another node passed on has its ids already: sent twice it is stored once, and it can be taken back. It is not
 * stored when its sender has stopped waiting, because by then it may have found another place for it.
 */
async function store(
  { jobs, clock, identity, placement }: NodeServices,
  requests: readonly SubmitRequest[],
  { firstUuid, deadlineAt }: Inbound,
  trace: string | null,
): Promise<readonly Submitted[]> {
  if (deadlineAt !== null && clock.monotonic() >= deadlineAt) {
    throw new BatonError("DEADLINE", "nobody waits for this any more; nothing was stored");
  }
  const retracted = placement?.retracted;
  // A job that another request has made is promised to this caller too, and must not be taken back any more.
  const confirm = async (
    submitted: readonly Submitted[],
    isOther: (each: Submitted, index: number) => boolean,
  ): Promise<readonly Submitted[]> => {
    const others = retracted ? submitted.filter(isOther) : [];
    if (others.length > 0) await Promise.all(others.map(({ id }) => retracted!.confirm(id)));
    return submitted;
  };
  if (firstUuid === null) return confirm(await jobs.submit(requests, { trace }), ({ existed }) => existed);
  const named = requests.map((each, index) => {
    return { ...each, id: jobId(identity.name, uuidAt(firstUuid, index)) };
  });
  const write = (): Promise<readonly Submitted[]> => jobs.submit(named, { trace });
  const submitted = await (retracted ? retracted.store(firstUuid, write) : write());
  if (submitted === null)
    throw new BatonError("DEADLINE", "whoever passed this on has placed it elsewhere; nothing was stored");
  return confirm(submitted, ({ id }, index) => id !== named[index]!.id);
}

export function request(body: JobRequestBody, index: number | null): SubmitRequest {
  const at = index === null ? "" : `[${index}].`;
  if (body.run_at !== undefined && body.delay_ms !== undefined) {
    const field = `${at}delay_ms`;
    throw new BatonError("BAD_REQUEST", `give "${at}run_at" or "${field}", not both`, { field });
  }
  return fromBody(body);
}

function withKey(body: JobRequestBody, header: string | string[]): JobRequestBody {
  const field = "idempotency_key";
  if (typeof header !== "string" || !IdempotencyKey.safeParse(header).success) {
    const remedy = IdempotencyKey.description;
    throw new BatonError("BAD_REQUEST", `the header Idempotency-Key must be ${remedy}`, { field });
  }
  if (body.idempotency_key !== undefined && body.idempotency_key !== header) {
    const message = `the header Idempotency-Key contradicts "${field}"; send one of them`;
    throw new BatonError("BAD_REQUEST", message, { field });
  }
  return { ...body, idempotency_key: header };
}

function keyForMany(): BatonError {
  return new BatonError(
    "BAD_REQUEST",
    'the header Idempotency-Key is for one job; give each job of an array its own "idempotency_key"',
    { field: "idempotency_key" },
  );
}

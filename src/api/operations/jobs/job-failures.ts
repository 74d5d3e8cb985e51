/** Failed jobs grouped by error, among the newest few thousand. */

import { z } from "zod";
import { sumOf } from "../../../core/format-figures.ts";
import { groupFailures, mergeGroups, type FailedJob } from "../../../core/jobs/failure-groups.ts";
import type { BriefJob } from "../../../store/store.ts";
import { askAllNodes, searchOf } from "../../ask-all-nodes.ts";
import { Instant, limit, Name } from "../../bodies/fields.ts";
import { fromWire, toWire } from "../../schema/to-wire.ts";
import { answer, operation } from "../../operation.ts";
import type { Jobs } from "../../../jobs/job-service.ts";

const LOOKED_AT_MAX = 5_000;
const PAGE = 1_000;

const FailuresQuery = z.strictObject({
  since: Instant.optional().describe("only those that failed at or after this instant"),
  queue: Name.optional(),
  task: Name.optional(),
  limit: limit(50, 500),
});
type Query = z.output<typeof FailuresQuery>;

const GroupBody = z.object({
  task: z.string(),
  code: z.string(),
  message: z.string().describe("with numbers, ids and quoted words left out"),
  count: z.int(),
  first_at: z.string(),
  last_at: z.string(),
  example_job_id: z.string().describe("the latest"),
  queues: z.array(z.string()),
});
const groupBody = toWire(GroupBody, { example_job_id: "example" });
const groupOf = fromWire(GroupBody, { example_job_id: "example" });

const FailuresBody = z.object({
  groups: z.array(GroupBody),
  looked_at: z.int().describe("how many failed jobs this is made of"),
  complete: z.boolean().describe("whether these are all that failed"),
  partial: z.boolean(),
  unreachable: z.array(z.string()),
});
type FailuresBody = z.output<typeof FailuresBody>;

export const getFailures = operation("GET /cluster/failures", {
  summary: "Failed jobs grouped by task and error, the largest group first",
  query: FailuresQuery,
  replies: { 200: FailuresBody },
  async handler(services, { query, inbound }) {
    const { answers, partial, unreachable } = await askAllNodes<FailuresBody>(services, inbound, {
      here: () => ownFailures(services.jobs, query),
      path: () => `/cluster/failures${searchOf(query)}`,
      read: (body) => FailuresBody.parse(body),
    });
    const parts = answers.map(({ answer: part }) => part);
    const groups = mergeGroups(parts.flatMap((part) => part.groups.map(groupOf))).map(groupBody);
    return answer(200, {
      groups: groups.slice(0, query.limit),
      looked_at: sumOf(parts, ({ looked_at }) => looked_at),
      complete: !partial && parts.every(({ complete }) => complete),
      partial,
      unreachable,
    });
  },
});

async function ownFailures(jobs: Jobs, { since, queue, task, limit: wanted }: Query): Promise<FailuresBody> {
  const from = since === undefined ? 0 : Date.parse(since);
  const failed: FailedJob[] = [];
  let cursor: string | undefined;
  let looked = 0;
  do {
    const page = await jobs.brief({ status: "failed", limit: PAGE, queue, task, cursor });
    looked += page.jobs.length;
    failed.push(...page.jobs.map(failedJob).filter(({ at }) => at >= from));
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined && looked < LOOKED_AT_MAX);
  const groups = groupFailures(failed).slice(0, wanted).map(groupBody);
  return { groups, looked_at: looked, complete: cursor === undefined, partial: false, unreachable: [] };
}

function failedJob({ id, task, queue, error, finishedAt, createdAt }: BriefJob): FailedJob {
  return {
    id,
    task,
    queue,
    code: error?.code ?? "UNKNOWN",
    message: error?.message ?? "",
    at: finishedAt ?? createdAt,
  };
}

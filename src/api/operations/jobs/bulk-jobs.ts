/** Retries, cancels or deletes many jobs, a page per call: calls are short, and callers can show their progress. */

import { z } from "zod";
import { blanked } from "../../../core/jobs/failure-groups.ts";
import { sumOf } from "../../../core/format-figures.ts";
import { parseJobId, type JobId } from "../../../core/ids.ts";
import { ACTION_STATUSES, type JobStatus } from "../../../core/jobs/job.ts";
import type { BriefJob } from "../../../store/store.ts";
import { asksOthers, askAllNodes, badCursor, readCursor, writeCursor, Cursor } from "../../ask-all-nodes.ts";
import type { Inbound } from "../../../transport/hop-headers.ts";
import { answer, operation } from "../../operation.ts";
import type { Jobs } from "../../../jobs/job-service.ts";
import type { NodeServices } from "../../node-services.ts";
import { BatonError } from "../../../core/errors.ts";
import { atOnce } from "../../../platform/loop.ts";
import { JobIdText, Reason, whole } from "../../bodies/fields.ts";
import { JobsQuery, jobQuery } from "./jobs.ts";

export const PAGE_MAX = 1_000;

export const BulkBody = z.strictObject({
  action: z.enum(["retry", "cancel", "delete"]),
  filter: JobsQuery.omit({ limit: true, cursor: true })
    .extend({
      error_message: z
        .string()
        .max(1_000)
        .optional()
        .describe("a message as GET /cluster/failures tells it, with what differs left out"),
    })
    .optional(),
  ids: z
    .array(JobIdText)
    .min(1)
    .max(PAGE_MAX)
    .optional()
    .describe(`a list of 1 to ${PAGE_MAX} job ids, in place of a filter`),
  dry_run: z.boolean().optional().describe("true to count without changing anything"),
  limit: whole(1, PAGE_MAX, ": jobs looked at by one call").optional(),
  cursor: Cursor.optional(),
  reason: Reason.optional(),
});
export type BulkBody = z.output<typeof BulkBody>;

export const BulkAnswer = z.object({
  matched: z.int(),
  changed: z.int(),
  skipped: z.array(z.object({ job_id: z.string(), why: z.string() })),
  skipped_count: z.int(),
  next_cursor: z.string().nullable().describe("call again with it, until it is null"),
  partial: z.boolean().describe("a node could not be reached, so its jobs were left alone"),
});
export type BulkAnswer = z.output<typeof BulkAnswer>;

const DONE = { retry: "retried", cancel: "cancelled", delete: "deleted" } as const;

export function statusesOf({ action, filter, ids }: BulkBody): readonly JobStatus[] {
  if ((filter === undefined) === (ids === undefined))
    throw bad("filter", 'give exactly one of "filter" and "ids"');
  const allowed = ACTION_STATUSES[action];
  const status = filter?.status ?? (action === "retry" ? "failed" : undefined);
  if (status === undefined) {
    if (action !== "delete" || !filter) return allowed;
    throw bad("filter.status", '"filter.status" is needed to delete: say which jobs are meant');
  }
  if (allowed.includes(status)) return [status];
  const why = `jobs that are ${status} cannot be ${DONE[action]}; use ${allowed.join(" or ")}`;
  throw bad("filter.status", `"filter.status": ${why}`);
}

function bad(field: string, message: string): BatonError {
  return new BatonError("BAD_REQUEST", message, { field });
}

const PAGE = 500;
/** At the same time. More only wait for each other in the store. */
const HANDS = 8;
const SKIPPED_TOLD = 20;

export const bulkJobs = operation("POST /cluster/jobs/bulk", {
  summary:
    "Retry, cancel or delete all jobs that fit a filter, or those with these ids: a page with each call",
  body: BulkBody,
  replies: { 200: BulkAnswer },
  async handler(services, { body, inbound }) {
    statusesOf(body);
    const { ids } = body;
    if (!asksOthers(services, inbound)) return answer(200, await own(services.jobs, body));
    return answer(200, await (ids ? byOwner(services, inbound, body, ids) : ofAll(services, inbound, body)));
  },
});

async function own(jobs: Jobs, body: BulkBody): Promise<BulkAnswer> {
  const { ids, dry_run = false } = body;
  const page = ids ? { ids: ids as JobId[], next: null } : await find(jobs, body);
  const skipped: BulkAnswer["skipped"] = [];
  if (!dry_run) {
    await atOnce(HANDS, page.ids.values(), async (id) => {
      const why = await act(jobs, id, body);
      if (why !== null) skipped.push({ job_id: id, why });
    });
  }
  return {
    matched: page.ids.length,
    changed: dry_run ? 0 : page.ids.length - skipped.length,
    skipped: skipped.slice(0, SKIPPED_TOLD),
    skipped_count: skipped.length,
    next_cursor: page.next,
    partial: false,
  };
}

async function act(jobs: Jobs, id: JobId, { action, reason }: BulkBody): Promise<string | null> {
  switch (action) {
    case "retry": {
      const outcome = await jobs.retry(id);
      if (outcome === "retried") return null;
      if (outcome === "superseded") return "its idempotency key was used again since";
      return outcome === "missing" ? "it is gone" : `it is ${outcome}`;
    }
    case "cancel": {
      const outcome = await jobs.cancel(id, reason ?? null);
      if (outcome.outcome === "missing") return "it is gone";
      return outcome.outcome === "finished" ? `it is ${outcome.status} already` : null;
    }
    case "delete": {
      const outcome = await jobs.remove(id);
      if (outcome === "removed") return null;
      return outcome === "missing" ? "it is gone" : "it is running";
    }
  }
}

async function find(jobs: Jobs, body: BulkBody): Promise<{ ids: JobId[]; next: string | null }> {
  const statuses = statusesOf(body);
  const place = placeOf(body.cursor, statuses.length);
  const { filter: { error_message: _, ...filter } = {}, limit = PAGE } = body;
  const { status, cursor } = place;
  const page = await jobs.brief(jobQuery({ ...filter, status: statuses[status]!, limit, cursor }));
  const ids = page.jobs.filter((job) => fits(job, body)).map(({ id }) => id);
  if (page.cursor !== null) return { ids, next: `${status}:${page.cursor}` };
  return { ids, next: status + 1 < statuses.length ? `${status + 1}:` : null };
}

function fits({ error }: BriefJob, { filter }: BulkBody): boolean {
  const wanted = filter?.error_message;
  return wanted === undefined || blanked(error?.message ?? "") === wanted;
}

function placeOf(cursor: string | undefined, statuses: number): { status: number; cursor?: string } {
  if (cursor === undefined) return { status: 0 };
  const [, status, rest] = /^(\d):(\d{0,16})$/.exec(cursor) ?? [];
  if (status === undefined || Number(status) >= statuses) throw badCursor();
  return { status: Number(status), ...(rest !== "" && { cursor: rest! }) };
}

/** Asks the chosen nodes for their part, this one without a call. */
function askParts(
  services: NodeServices,
  inbound: Inbound,
  only: (node: string) => boolean,
  partOf: (node: string) => BulkBody,
) {
  return askAllNodes<BulkAnswer>(services, inbound, {
    only,
    here: () => own(services.jobs, partOf(services.identity.name)),
    path: () => "/cluster/jobs/bulk",
    body: partOf,
    read: (body) => BulkAnswer.parse(body),
    deadlineMs: services.peers!.requestTimeoutMs,
  });
}

async function ofAll(services: NodeServices, inbound: Inbound, body: BulkBody): Promise<BulkAnswer> {
  const { cursor, limit = PAGE, ...rest } = body;
  const begun = cursor === undefined ? null : readCursor(cursor, (place) => place);
  const share = Math.ceil(limit / Math.max(1, begun?.size ?? services.cluster.nodes().length));
  const partOf = (node: string): BulkBody => {
    const place = begun?.get(node);
    return { ...rest, limit: share, ...(place !== undefined && { cursor: place }) };
  };
  const isMeant = (node: string): boolean => begun === null || begun.has(node);
  const { answers, partial } = await askParts(services, inbound, isMeant, partOf);
  const places = new Map<string, string>();
  for (const { node, answer: part } of answers)
    if (part.next_cursor !== null) places.set(node, part.next_cursor);
  return { ...sum(answers.map(({ answer: part }) => part)), next_cursor: writeCursor(places), partial };
}

async function byOwner(
  services: NodeServices,
  inbound: Inbound,
  body: BulkBody,
  ids: readonly string[],
): Promise<BulkAnswer> {
  const known = new Set<string>(services.cluster.nodes().map(({ name }) => name));
  const owners = Map.groupBy(ids, (id): string => parseJobId(id)?.birthplace ?? "");
  const partOf = (node: string): BulkBody => ({ ...body, ids: owners.get(node) ?? [] });
  const isMeant = (node: string): boolean => owners.has(node);
  const { answers, unreachable, partial } = await askParts(services, inbound, isMeant, partOf);
  const lost = [...owners].flatMap(([node, theirs]) => {
    if (known.has(node) && !unreachable.includes(node)) return [];
    const why = known.has(node) ? `its node ${node} cannot be reached` : `its node ${node} is not known`;
    return theirs.map((job_id) => ({ job_id, why }));
  });
  const done = sum(answers.map(({ answer: part }) => part));
  return {
    ...done,
    skipped: [...done.skipped, ...lost].slice(0, SKIPPED_TOLD),
    skipped_count: done.skipped_count + lost.length,
    partial: partial || lost.length > 0,
  };
}

function sum(parts: readonly BulkAnswer[]): BulkAnswer {
  return {
    matched: sumOf(parts, ({ matched }) => matched),
    changed: sumOf(parts, ({ changed }) => changed),
    skipped: parts.flatMap(({ skipped }) => skipped).slice(0, SKIPPED_TOLD),
    skipped_count: sumOf(parts, ({ skipped_count }) => skipped_count),
    next_cursor: null,
    partial: false,
  };
}

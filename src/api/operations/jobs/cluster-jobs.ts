/** The jobs of all nodes as one list: from the shared store, or from all nodes at the same time. */

import { z } from "zod";
import { asksOthers, Cursor, mergedPage, searchOf } from "../../ask-all-nodes.ts";
import type { Inbound } from "../../../transport/hop-headers.ts";
import { JobSummaryBody, jobSummary } from "../../bodies/job-body.ts";
import { answer, operation } from "../../operation.ts";
import type { NodeServices } from "../../node-services.ts";
import { countOf, JobsQuery, jobQuery, type ListedJobs } from "./jobs.ts";

type Query = z.output<typeof JobsQuery>;

export const listClusterJobs = operation("GET /cluster/jobs", {
  summary: "The jobs of all nodes that can be reached, newest first, without their payloads",
  query: JobsQuery.extend({ cursor: Cursor.optional() }),
  replies: {
    200: z.object({
      items: z.array(JobSummaryBody),
      nodes: z.array(
        z.object({
          name: z.string(),
          reachable: z.boolean(),
          job_count: z
            .int()
            .describe(
              "how many of the jobs asked for it has, before the list was cut; in a shared store, how many on this page it owns",
            ),
        }),
      ),
      partial: z.boolean().describe("a node could not be reached, so its jobs are missing"),
      next_cursor: z.string().nullable(),
    }),
  },
  async handler(services, { query, inbound }) {
    const page = asksOthers(services, inbound) ? ofAll(services, inbound, query) : ofStore(services, query);
    return answer(200, await page);
  },
});

async function ofStore({ identity, jobs, cluster, guarantees }: NodeServices, query: Query) {
  const page = await jobs.list(jobQuery(query));
  const nodes = cluster.nodes().filter((node) => guarantees.shared || node.name === identity.name);
  return {
    items: page.jobs.map(jobSummary),
    nodes: nodes.map((node) => ({
      name: node.name,
      reachable: node.alive,
      job_count: page.jobs.filter((job) => job.owner === node.name).length,
    })),
    partial: false,
    next_cursor: page.cursor,
  };
}

async function ofAll(services: NodeServices, inbound: Inbound, { limit, cursor, ...filter }: Query) {
  const { items, nextCursor, answers, nodes, partial } = await mergedPage<JobSummaryBody>(
    services,
    inbound,
    { limit, cursor },
    {
      here: async (query) => {
        const own = { ...filter, ...query };
        const [page, count] = await Promise.all([services.jobs.list(jobQuery(own)), countOf(services, own)]);
        return { items: page.jobs.map(jobSummary), cursor: page.cursor, count };
      },
      path: (query) => `/admin/jobs${searchOf({ ...filter, ...query })}`,
      read: readPage,
      idOf: ({ job_id }) => job_id,
      isNewer: (a, b) =>
        a.created_at > b.created_at || (a.created_at === b.created_at && a.job_id > b.job_id),
    },
  );
  const counts = new Map(
    answers.map(({ node, answer: { items: own, count } }) => [node, count ?? own.length]),
  );
  return {
    items,
    nodes: nodes.map((node) => ({ ...node, job_count: counts.get(node.name) ?? 0 })),
    partial,
    next_cursor: nextCursor,
  };
}

/** As `GET /admin/jobs` answers it; not checked job by job. */
function readPage(body: unknown) {
  const { jobs, next_cursor, job_count } = body as Partial<ListedJobs>;
  if (!Array.isArray(jobs)) throw new TypeError("not a page of jobs");
  return { items: jobs, cursor: next_cursor ?? null, count: job_count ?? null };
}

/** The jobs of all nodes as one list: from the shared store, or from all nodes at the same time. */

import { z } from "zod";
import { fanOut } from "../../../peers/fan-out.ts";
import type { NodeAnswer } from "../../../peers/fan-out.ts";
import { mergePages } from "../../../core/merge-pages.ts";
import { readCursor, writeCursor } from "../../cluster-cursor.ts";
import { searchOf } from "../../ask-all-nodes.ts";
import { hopPath } from "../../../transport/hop-headers.ts";
import { JobSummaryBody, jobSummary } from "../../bodies/job-body.ts";
import { answer, operation } from "../../operation.ts";
import type { NodeServices } from "../../node-services.ts";
import type { Peers } from "../../../transport/hop-headers.ts";
import { countOf, JobsQuery, jobQuery } from "./jobs.ts";

/** One place for each node. */
const CURSOR_LENGTH_MAX = 8_192;
const LIMIT_MAX = 1_000;

type Query = z.output<typeof JobsQuery>;

const Place = z.object({
  /** Of the node's own list; null for its beginning. */
  cursor: z.string().nullable(),
  /** The last job taken from that page; null if none was. */
  last: z.string().nullable(),
  /** How many were taken from that page. */
  taken: z.int().min(0),
});
type Place = z.output<typeof Place>;

/** As `GET /admin/jobs` answers it. */
interface NodePage {
  readonly jobs: readonly JobSummaryBody[];
  readonly next_cursor: string | null;
  readonly job_count: number | null;
}

export const clusterJobs = operation("GET /cluster/jobs", {
  name: "list_cluster_jobs",
  summary: "The jobs of all nodes that can be reached, newest first, without their payloads",
  tag: "cluster",
  permission: "read",
  query: JobsQuery.extend({
    cursor: z
      .string()
      .min(1)
      .max(CURSOR_LENGTH_MAX)
      .optional()
      .meta({ description: "the next_cursor of an earlier answer" }),
  }),
  replies: {
    200: z.object({
      items: z.array(JobSummaryBody),
      nodes: z.array(
        z.object({
          name: z.string(),
          reachable: z.boolean(),
          job_count: z.int().meta({
            description:
              "how many of the jobs asked for it has, before the list was cut; in a shared store, how many on this page it owns",
          }),
        }),
      ),
      partial: z.boolean().meta({ description: "a node could not be reached, so its jobs are missing" }),
      next_cursor: z.string().nullable(),
    }),
  },
  async handler(services, { query }) {
    const { peers, guarantees } = services;
    return answer(
      200,
      await (peers && !guarantees.shared ? ofAll(services, peers, query) : ofStore(services, query)),
    );
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

async function ofAll(services: NodeServices, peers: Peers, { cursor, limit, ...filter }: Query) {
  const { identity, cluster, clock } = services;
  const begun = cursor === undefined ? null : readCursor(cursor, Place);
  const start: Place = { cursor: null, last: null, taken: 0 };
  const placeOf = (name: string): Place => begun?.get(name) ?? start;
  /** Of a page that was begun, with what was taken from it already. */
  const asked = (name: string): Query => {
    const place = placeOf(name);
    const wanted = Math.min(limit + place.taken, LIMIT_MAX);
    return { ...filter, limit: wanted, ...(place.cursor !== null && { cursor: place.cursor }) };
  };
  const nodes = cluster.nodes().filter(({ name }) => begun === null || begun.has(name));
  const answers = await fanOut<NodePage>({
    nodes,
    self: identity.name,
    here: () => ownPage(services, asked(identity.name)),
    request: (node) => {
      const sentAt = Math.floor(clock.now());
      return { method: "GET", path: hopPath(`/admin/jobs${searchOf(asked(node.name))}`, { sentAt }) };
    },
    call: (url, request, options) => peers.call(url, request, options),
    read: readPage,
  });
  const pages = answers.map(({ node, answer: page }) => ({
    node: node.name,
    items: page ? rest(page.jobs, placeOf(node.name)) : [],
    more: page !== null && page.next_cursor !== null,
  }));
  const { items, taken } = mergePages(pages, limit, isNewer);
  const places = nextPlaces(answers, pages, taken, placeOf);
  return {
    items: [...items],
    nodes: answers.map(({ node, answer: page }) => ({
      name: node.name,
      reachable: page !== null,
      job_count: page ? (page.job_count ?? page.jobs.length) : 0,
    })),
    partial: answers.some((each) => each.answer === null),
    next_cursor: writeCursor(places),
  };
}

async function ownPage(services: NodeServices, query: Query): Promise<NodePage> {
  const [page, count] = await Promise.all([services.jobs.list(jobQuery(query)), countOf(services, query)]);
  return { jobs: page.jobs.map(jobSummary), next_cursor: page.cursor, job_count: count };
}

/** What was not taken yet. New jobs stand before it meanwhile, so the last one taken tells more than their number. */
function rest(jobs: readonly JobSummaryBody[], { last, taken }: Place): readonly JobSummaryBody[] {
  if (last === null) return jobs;
  const at = jobs.findIndex((job) => job.job_id === last);
  return jobs.slice(at < 0 ? taken : at + 1);
}

function nextPlaces(
  answers: readonly NodeAnswer<NodePage>[],
  pages: readonly { readonly items: readonly JobSummaryBody[]; readonly more: boolean }[],
  taken: readonly number[],
  placeOf: (name: string) => Place,
): ReadonlyMap<string, Place> {
  const places = new Map<string, Place>();
  answers.forEach(({ node, answer: page }, index) => {
    // A node that was not reached is not waited for: the list would never end.
    if (!page) return;
    const { items, more } = pages[index]!;
    const before = placeOf(node.name);
    if (taken[index] === items.length) {
      if (more) places.set(node.name, { cursor: page.next_cursor, last: null, taken: 0 });
      return;
    }
    const last = taken[index]! > 0 ? items[taken[index]! - 1]!.job_id : before.last;
    places.set(node.name, { cursor: before.cursor, last, taken: before.taken + taken[index]! });
  });
  return places;
}

function isNewer(a: JobSummaryBody, b: JobSummaryBody): boolean {
  return a.created_at > b.created_at || (a.created_at === b.created_at && a.job_id > b.job_id);
}

function readPage(body: unknown): NodePage {
  const { jobs, next_cursor, job_count } = body as Partial<NodePage>;
  if (!Array.isArray(jobs)) throw new TypeError("not a page of jobs");
  return { jobs, next_cursor: next_cursor ?? null, job_count: job_count ?? null };
}

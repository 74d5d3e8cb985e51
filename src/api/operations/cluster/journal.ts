/** Lists the journal of the cluster, newest first: from the shared store, or merged from the journals of all nodes. */

import { z } from "zod";
import { mergePages } from "../../../core/merge-pages.ts";
import { badCursor, readCursor, writeCursor } from "../../cluster-cursor.ts";
import { asksOthers, askAllNodes, searchOf } from "../../ask-all-nodes.ts";
import { limit } from "../../bodies/fields.ts";
import type { Inbound } from "../../../transport/hop-headers.ts";
import { JournalEntryBody, journalEntryBody, JournalKindName, kindsOf } from "../../bodies/journal-body.ts";
import { answer, operation } from "../../operation.ts";
import type { NodeServices } from "../../node-services.ts";

const JournalQuery = z.strictObject({
  kind: JournalKindName.optional(),
  subject: z.string().min(1).max(256).optional().meta({
    description: "a text of 1 to 256 characters: the role, node, job or assignment that it is about",
  }),
  limit: limit(100, 1_000),
  cursor: z
    .string()
    .min(1)
    .max(8_192)
    .optional()
    .meta({ description: "the next_cursor of an earlier answer" }),
});
type Query = z.output<typeof JournalQuery>;

const JournalBody = z.object({
  entries: z.array(JournalEntryBody),
  next_cursor: z.string().nullable(),
  partial: z.boolean().meta({ description: "a node could not be reached, so what it wrote down is missing" }),
  unreachable: z.array(z.string()),
});
type JournalBody = z.output<typeof JournalBody>;

export const getJournal = operation("GET /cluster/journal", {
  name: "get_journal",
  summary: "What happened to the cluster, newest first: terms, nodes, refused writes, handoffs, who did what",
  tag: "cluster",
  permission: "read",
  query: JournalQuery,
  replies: { 200: JournalBody },
  async handler(services, { query, inbound }) {
    return answer(200, await journalPage(services, inbound, query));
  },
});

type Asked = Omit<NodeServices, "live">;

export async function journalPage(services: Asked, inbound: Inbound, query: Query): Promise<JournalBody> {
  return asksOthers(services, inbound) ? ofAll(services, inbound, query) : ofStore(services, query);
}

async function ofStore(
  { journal }: Pick<NodeServices, "journal">,
  { kind, subject, limit: wanted, cursor }: Query,
) {
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw badCursor();
  const entries = await journal.list({
    ...(kind !== undefined && { kinds: kindsOf(kind) }),
    ...(subject !== undefined && { subject }),
    ...(cursor !== undefined && { before: cursor }),
    limit: wanted,
  });
  return {
    entries: entries.map(journalEntryBody),
    next_cursor: entries.length === wanted ? entries.at(-1)!.id : null,
    partial: false,
    unreachable: [],
  };
}

/** Each node has its own numbers: an entry is then known by the node and the number. */
async function ofAll(services: Asked, inbound: Inbound, { cursor, ...query }: Query) {
  const begun = cursor === undefined ? null : readCursor(cursor, Place);
  const asked = (node: string): Query => {
    const before = begun?.get(node);
    return { ...query, ...(before !== undefined && { cursor: before }) };
  };
  const { answers, partial, unreachable } = await askAllNodes<JournalBody>(services, inbound, {
    here: () => ofStore(services, asked(services.identity.name)),
    path: (node) => `/cluster/journal${searchOf(asked(node))}`,
    read: (body) => JournalBody.parse(body),
  });
  // A node that is not in the cursor has told all that it had, or could not be reached when the list began.
  const reached = answers.filter(({ node }) => begun === null || begun.has(node));
  const pages = reached.map(({ node, answer: { entries, next_cursor } }) => ({
    node,
    items: entries,
    more: next_cursor !== null,
  }));
  const { items, taken } = mergePages(
    pages.map(({ node, items: own, more }) => ({
      node,
      items: own.map((entry) => ({ ...entry, id: `${node}:${entry.id}` })),
      more,
    })),
    query.limit,
    (a, b) => a.at > b.at || (a.at === b.at && a.id > b.id),
  );
  const places = new Map<string, string>();
  pages.forEach(({ node, items: own, more }, at) => {
    if (taken[at] === own.length && !more) return;
    places.set(node, own[taken[at]! - 1]?.id ?? begun?.get(node) ?? START);
  });
  return {
    entries: [...items],
    next_cursor: writeCursor(places),
    partial,
    unreachable: [...unreachable],
  };
}

/** The number of an entry; older ones follow. */
const Place = z.string().regex(/^\d{1,15}$/);
/** Of a node from whose page nothing was taken yet: above all numbers. */
const START = "999999999999999";

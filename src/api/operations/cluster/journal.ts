/** Lists the journal of the cluster, newest first: from the shared store, or merged from the journals of all nodes. */

import { z } from "zod";
import { asksOthers, badCursor, Cursor, mergedPage, searchOf } from "../../ask-all-nodes.ts";
import { limit, bounded } from "../../bodies/fields.ts";
import type { Inbound } from "../../../transport/hop-headers.ts";
import { answer, operation } from "../../operation.ts";
import type { NodeServices } from "../../node-services.ts";
import { JOURNAL_KINDS, type JournalKind } from "../../../store/journal.ts";
import { toWire } from "../../schema/to-wire.ts";

export const JournalEntryBody = z.object({
  id: z.string(),
  at: z.string(),
  kind: z.enum(JOURNAL_KINDS),
  node: z.string().describe("who has written it down"),
  actor: z.string().nullable().describe("who did it, where that is a person or a token"),
  subject: z.string().nullable().describe("the role, the node, the job or the assignment"),
  detail: z.record(z.string(), z.unknown()),
});
export type JournalEntryBody = z.output<typeof JournalEntryBody>;

export const journalEntryBody = toWire(JournalEntryBody);

/** `term` stands for all kinds that begin with it. */
const FAMILIES = [...new Set(JOURNAL_KINDS.filter((kind) => kind.includes(".")).map(familyOf))];

export const JournalKindName = z
  .enum([...FAMILIES, ...JOURNAL_KINDS])
  .describe(`one of ${[...FAMILIES, ...JOURNAL_KINDS].join(", ")}`);

export function kindsOf(name: string): readonly JournalKind[] {
  return JOURNAL_KINDS.filter((kind) => kind === name || familyOf(kind) === name);
}

function familyOf(kind: string): string {
  return kind.split(".")[0]!;
}

const JournalQuery = z.strictObject({
  kind: JournalKindName.optional(),
  subject: bounded(
    256,
    "a text of 1 to 256 characters: the role, node, job or assignment that it is about",
  ).optional(),
  limit: limit(100, 1_000),
  cursor: Cursor.optional(),
});
type Query = z.output<typeof JournalQuery>;

const JournalBody = z.object({
  entries: z.array(JournalEntryBody),
  next_cursor: z.string().nullable(),
  partial: z.boolean().describe("a node could not be reached, so what it wrote down is missing"),
  unreachable: z.array(z.string()),
});
type JournalBody = z.output<typeof JournalBody>;

export const getJournal = operation("GET /cluster/journal", {
  summary: "What happened to the cluster, newest first: terms, nodes, refused writes, handoffs, who did what",
  query: JournalQuery,
  replies: { 200: JournalBody },
  handler: async (services, { query, inbound }) => answer(200, await journalPage(services, inbound, query)),
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
  const kinds = kind === undefined ? undefined : kindsOf(kind);
  const entries = await journal.list({ kinds, subject, before: cursor, limit: wanted });
  return {
    entries: entries.map(journalEntryBody),
    next_cursor: entries.length === wanted ? entries.at(-1)!.id : null,
    partial: false,
    unreachable: [],
  };
}

/** Each node has its own numbers: an entry is then known by the node and the number. */
async function ofAll(services: Asked, inbound: Inbound, { limit: wanted, cursor, ...filter }: Query) {
  const { items, nextCursor, partial, unreachable } = await mergedPage<JournalEntryBody>(
    services,
    inbound,
    { limit: wanted, cursor },
    {
      here: async (query) => pageOf(await ofStore(services, { ...filter, ...query })),
      path: (query) => `/cluster/journal${searchOf({ ...filter, ...query })}`,
      read: (body) => pageOf(JournalBody.parse(body)),
      idOf: ({ node, id }) => `${node}:${id}`,
      isNewer: (a, b) => a.at > b.at || (a.at === b.at && `${a.node}:${a.id}` > `${b.node}:${b.id}`),
    },
  );
  const entries = items.map((entry) => ({ ...entry, id: `${entry.node}:${entry.id}` }));
  return { entries, next_cursor: nextCursor, partial, unreachable };
}

function pageOf({ entries, next_cursor }: JournalBody) {
  return { items: entries, cursor: next_cursor };
}

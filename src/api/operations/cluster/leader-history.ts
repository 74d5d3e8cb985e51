/** The history of leadership: terms with the reason of their end, and refused writes of former leaders. */

import { z } from "zod";
import { sumOf } from "../../../core/format-figures.ts";
import { termHistory, type TermEntry } from "../../../core/leadership/term-history.ts";
import { LEADER_ROLES } from "../../../core/leadership/term.ts";
import { asksOthers } from "../../ask-all-nodes.ts";
import { limit } from "../../bodies/fields.ts";
import { toWire } from "../../schema/to-wire.ts";
import { type JournalEntryBody, journalPage } from "./journal.ts";
import { answer, operation } from "../../operation.ts";

/** A term has an entry for its beginning and one or two for its end. */
const ENTRIES_PER_TERM = 3;
const ENTRIES_MAX = 1_000;
const REFUSED_MAX = 500;
const EXAMPLES = 20;

const TermBody = z.object({
  role: z.string(),
  epoch: z.int(),
  node_id: z.string(),
  started_at: z.string(),
  ended_at: z.string().nullable().describe("null: it goes on, as far as is known"),
  reason: z.string().nullable(),
});
const termBody = toWire(TermBody, { node_id: "leader" });

export const getLeaderHistory = operation("GET /cluster/leaders/history", {
  summary:
    "The terms of leadership, newest first, with the reason of their end, and writes that were refused",
  query: z.strictObject({
    role: z
      .enum(LEADER_ROLES)
      .optional()
      .describe(`one of ${LEADER_ROLES.join(", ")}; all without it`),
    limit: limit(50, 300),
  }),
  replies: {
    200: z.object({
      terms: z.array(TermBody),
      refused: z.object({
        count: z.int().describe("writes that came under an old number, as far back as is looked"),
        examples: z.array(
          z.object({
            at: z.string(),
            node: z.string(),
            what: z.string(),
            carried_epoch: z.int().nullable(),
            current_epoch: z.int().nullable(),
            job_id: z.string().nullable(),
          }),
        ),
      }),
      partial: z.boolean(),
      unreachable: z.array(z.string()),
    }),
  },
  async handler(services, { query, inbound }) {
    const { role, limit: wanted } = query;
    const entries = Math.min(wanted * ENTRIES_PER_TERM, ENTRIES_MAX);
    const [recorded, refused] = await Promise.all([
      journalPage(services, inbound, { kind: "term", subject: role, limit: entries }),
      journalPage(services, inbound, { kind: "write.refused", limit: REFUSED_MAX }),
    ]);
    // Where each node has a store of its own, it also leads there by itself in all roles but one.
    const alone = asksOthers(services, inbound);
    const terms = termHistory(recorded.entries.map(termEntry), (each) => alone && each !== "scheduler");
    return answer(200, {
      terms: terms.slice(0, wanted).map(termBody),
      refused: {
        count: sumOf(refused.entries, ({ detail }) => Number(detail["count"] ?? 1)),
        examples: refused.entries.slice(0, EXAMPLES).map(refusedExample),
      },
      partial: recorded.partial || refused.partial,
      unreachable: Array.from(new Set([...recorded.unreachable, ...refused.unreachable])),
    });
  },
});

function termEntry({ at, kind, node, detail }: JournalEntryBody): TermEntry {
  return {
    at: Date.parse(at),
    node,
    kind: kind === "term.started" ? "started" : "ended",
    role: String(detail["role"]),
    epoch: Number(detail["epoch"]),
    leader: String(detail["leader"]),
    reason: (detail["reason"] as string | undefined) ?? null,
  };
}

function refusedExample({ at, node, detail }: JournalEntryBody) {
  const { what, carried_epoch, current_epoch, job_id } = detail as Record<string, string | number | null>;
  const epochs = { carried_epoch: numberIn(carried_epoch), current_epoch: numberIn(current_epoch) };
  return { at, node, what: String(what), ...epochs, job_id: typeof job_id === "string" ? job_id : null };
}

function numberIn(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

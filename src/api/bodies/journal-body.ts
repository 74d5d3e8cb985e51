/** The response body of the journal. */

import { z } from "zod";
import { JOURNAL_KINDS } from "../../store/journal.ts";
import type { JournalEntry, JournalKind } from "../../store/journal.ts";
import { isoOf } from "./fields.ts";

export const JournalEntryBody = z.object({
  id: z.string(),
  at: z.string(),
  kind: z.enum(JOURNAL_KINDS),
  node: z.string().meta({ description: "who has written it down" }),
  actor: z.string().nullable().meta({ description: "who did it, where that is a person or a token" }),
  subject: z.string().nullable().meta({ description: "the role, the node, the job or the assignment" }),
  detail: z.record(z.string(), z.unknown()),
});
export type JournalEntryBody = z.output<typeof JournalEntryBody>;

export function journalEntryBody({ at, ...entry }: JournalEntry): JournalEntryBody {
  return { ...entry, at: isoOf(at), detail: { ...entry.detail } };
}

/** `term` stands for all kinds that begin with it. */
const FAMILIES = [...new Set(JOURNAL_KINDS.filter((kind) => kind.includes(".")).map(familyOf))];

export const JournalKindName = z.enum([...FAMILIES, ...JOURNAL_KINDS]).meta({
  description: `one of ${[...FAMILIES, ...JOURNAL_KINDS].join(", ")}`,
});

export function kindsOf(name: string): readonly JournalKind[] {
  return JOURNAL_KINDS.filter((kind) => kind === name || familyOf(kind) === name);
}

function familyOf(kind: string): string {
  return kind.split(".")[0]!;
}

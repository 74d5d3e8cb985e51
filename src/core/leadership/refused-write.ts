/**
 * Writes that the store refuses because another writer has a newer epoch. Each has a stable code for metrics and
 * callers, and a text for people. Reporting a refusal is not done here.
 */

import { hasCode } from "../errors.ts";
import type { JobId } from "../ids.ts";

export const LEADER_WRITES = {
  "jobs.submit": "new jobs",
  "jobs.claim": "a claim of jobs",
  "jobs.record": "results, logs and progress",
  "jobs.renew": "a lease",
  "jobs.recover": "the recovery of jobs",
  "jobs.purge": "the removal of old jobs",
  "schedules.fire": "the firing of a schedule",
  "scheduleNotes.write": "notes of schedules",
  "scheduleNotes.read": "a read of the notes of schedules",
  "scheduleNotes.place": "a job of a schedule",
  "scheduleNotes.forget": "the removal of old notes",
  "samples.note": "a sample",
  "samples.purge": "the removal of old samples",
  "agents.seen": "a heartbeat of an agent",
  "agents.remove": "the removal of an agent",
  "agents.purge": "the removal of old agents",
  "journal.purge": "the removal of old entries",
  "ownership.dispatch": "a dispatch",
  "ownership.undispatch": "the end of a dispatch",
  "ownership.disown": "the end of an ownership",
  "ownership.orphans": "a search for orphans",
  "nodes.dead": "the report that nodes have died",
} as const;

/** `{id}` is replaced by the id of the lease or assignment. */
const OTHER_WRITES = {
  "run.result": { writer: "run", text: "the result of an earlier run" },
  "run.report": { writer: "run", text: "logs or progress of an earlier run" },
  "agent.result": { writer: "run", text: "the result of an agent under an earlier leader" },
  "lease.renew": { writer: "lease", text: "the renewal of lease {id}" },
  "ownership.write": { writer: "owner", text: "events of assignment {id} by an earlier owner" },
} as const;

export type LeaderWrite = keyof typeof LEADER_WRITES;
export type RefusedWrite = LeaderWrite | keyof typeof OTHER_WRITES;

export type StaleWriter = "run" | "lease" | "owner" | "leader";

export interface Refusal {
  readonly write: RefusedWrite;
  /** Null where it has none. */
  readonly carried: number | null;
  /** As far as it is known. */
  readonly current: number | null;
  readonly job: JobId | null;
  readonly id?: string | number;
}

export function staleWriter(write: RefusedWrite): StaleWriter {
  return write in OTHER_WRITES ? OTHER_WRITES[write as keyof typeof OTHER_WRITES].writer : "leader";
}

export function describeRefusal({ write, id = "" }: Pick<Refusal, "write" | "id">): string {
  if (!(write in OTHER_WRITES)) return `${LEADER_WRITES[write as LeaderWrite]} by an earlier leader`;
  return OTHER_WRITES[write as keyof typeof OTHER_WRITES].text.replace("{id}", String(id));
}

export function refusalOf(write: LeaderWrite, error: unknown): Refusal | null {
  if (!hasCode(error, "STALE_EPOCH")) return null;
  const { epoch = null, newest = null } = error.details as Record<string, number | null>;
  return { write, carried: epoch, current: newest, job: null };
}

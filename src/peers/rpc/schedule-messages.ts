/**
 * The messages between nodes about schedules. Unknown fields of a newer version are kept and passed on, so the schemas
 * check the shape and the types come from core.
 */

import { z } from "zod";
import { LEADER_ROLES, type Term } from "../../core/leadership/term.ts";
import type { JobId } from "../../core/ids.ts";
import type { JobStatus } from "../../core/jobs/job.ts";
import type { DeclaredSchedule } from "../../core/schedules/declared-schedules.ts";
import type { ScheduleNote, Version } from "../../core/schedules/schedule-register.ts";
import { split } from "../../platform/loop.ts";
import type { Placing } from "../../store/schedule-notes.ts";
import type { NotedOccurrence } from "../../store/store.ts";

const whole = z.int().min(0);
const instant = z.int();
const name = z.string().min(1).max(128);
const version = z.looseObject({ epoch: whole, counter: whole });
const term = z.looseObject({
  role: z.enum(LEADER_ROLES),
  leader: z.string().min(1),
  incarnation: z.string(),
  epoch: whole,
});
const run = z.looseObject({
  at: instant,
  runAt: instant.nullable(),
  job: z.string().min(1),
  target: z.string().min(1),
});
const template = z.looseObject({
  task: name,
  queue: name,
  priority: z.int(),
  payload: z.string(),
  maxAttempts: z.int(),
  timeoutMs: z.int().nullable(),
});
const timing = z.union([
  z.looseObject({ kind: z.literal("cron"), expression: z.string(), zone: z.string() }),
  z.looseObject({ kind: z.literal("every"), everyMs: z.number(), anchor: z.number() }),
]);
const definition = template.extend({
  name,
  timing,
  missed: z.string(),
  missedMax: z.int(),
  overlap: z.string(),
});
const schedule = definition.extend({
  paused: z.boolean(),
  createdAt: instant,
  updatedAt: instant,
  nextAt: instant.nullable(),
  lastFiredAt: instant.nullable(),
  lastJob: z.string().nullable(),
  leaderEpoch: whole,
});
const note = z.looseObject({
  /** Of a schedule, or the key of a queue. */
  name: z.string().min(1).max(140),
  version,
  schedule: schedule.nullable(),
  changedAt: instant,
  notedThrough: instant.nullable(),
  open: z.array(z.looseObject({ template: template.nullable(), runs: z.array(run) })),
  queue: z.looseObject({ name, paused: z.boolean() }).optional(),
});
const occurrence = z.looseObject({
  schedule: name,
  at: instant,
  do: z.enum(["fire", "skip"]),
  reason: z.string().nullable(),
  job: z.string().nullable(),
  leaderEpoch: whole,
  notedAt: instant,
});
const placing = z.looseObject({
  schedule: name,
  at: instant,
  version,
  job: template.extend({
    id: z.string().min(1),
    delayMs: whole,
    runAt: instant.nullable(),
    idempotencyKey: z.string().nullable(),
  }),
});
const blank = z.boolean();
const after = z.string().nullable();

/** Checks what `schema` describes and takes the value for a `Type`, which has more that may be trusted. */
function of<Type>(schema: z.ZodType): z.ZodType<Type> {
  return schema as z.ZodType<Type>;
}

const terms = of<Term>(term);
const notes = of<readonly ScheduleNote[]>(z.array(note));
const occurrences = of<readonly NotedOccurrence[]>(z.array(occurrence));
const versions = of<readonly { name: string; version: Version }[]>(
  z.array(z.looseObject({ name: note.shape.name, version })),
);

/** With `complete` the entry of the member in the peer set, so that an old message does not complete a later membership. */
export const noteAsked = z.looseObject({
  term: terms,
  notes,
  occurrences,
  complete: z.boolean(),
  entry: z.string().default(""),
});
/** `caughtUp`: the entry with which it was completed last. */
const caughtUp = z.string().default("");
export const noteAnswer = z.looseObject({ blank, caughtUp });
/** One page; `next` is where the following one begins, null at the end. */
export const pageAsked = z.looseObject({ term: terms, after });
export const notesAnswer = z.looseObject({ blank, caughtUp, notes, next: after });
/** Short forms of notes, to find out what a member lacks. */
export const digestsAnswer = z.looseObject({ blank, digests: versions, next: after });
/** The notes of queues. `blank`: it may have lost some. */
export const pausesAnswer = z.looseObject({ blank, caughtUp, notes });
/** What the code of a node declares; its version is the digest of all of it. */
export const declareAsked = z.looseObject({
  version: z.string().min(1).max(100),
  declared: of<readonly DeclaredSchedule[]>(z.array(z.looseObject({ definition, digest: z.string() }))),
});
export const pauseAsked = z.object({ queue: name, paused: z.boolean() });
/** The newest occurrences. */
export const historyAsked = z.looseObject({ schedule: name, limit: z.int().min(1).max(1_000) });
export const notedAsked = z.looseObject({ schedule: name, instants: z.array(instant) });
export const occurrencesAnswer = z.looseObject({ occurrences });
export const placeAsked = z.looseObject({ term: terms, runs: of<readonly Placing[]>(z.array(placing)) });
export const placeAnswer = z.looseObject({ verdicts: z.array(z.enum(["stored", "already", "absent"])) });
export const jobAsked = z.looseObject({ job: of<JobId>(z.string().min(1)) });
export const jobAnswer = z.looseObject({ status: of<JobStatus | null>(z.string().nullable()) });
export const forgetAsked = z.looseObject({ term: terms, names: versions });

/** Below the limit of listeners, and of a call's deadline. What is larger by itself (a long payload) goes alone. */
const BODY_CHARS = 256 * 1_024;

const ITEMS_MAX = 500;

/** Cuts a list into pieces that fit into a body each; none is empty. */
export function chunks<T>(items: readonly T[]): T[][] {
  return split(items, ITEMS_MAX, (item) => JSON.stringify(item).length, BODY_CHARS);
}

/**
 * The messages between nodes about schedules: one table of requests with their answers. Unknown fields of a newer
 * version are kept and passed on.
 */

import { z } from "zod";
import { LEADER_ROLES } from "../../core/leadership/term.ts";
import type { JobId } from "../../core/ids.ts";
import type { JobStatus } from "../../core/jobs/job.ts";
import type { ScheduleNote, Version } from "../../core/schedules/schedule-register.ts";
import type { Term } from "../../core/leadership/term.ts";
import type { NoteState, Placing, PlaceVerdict } from "../../store/schedule-notes.ts";
import type { NotedOccurrence } from "../../store/store.ts";

export const SCHEDULE_PATH = "/peer/schedules";

/** Short form of a note, to find out who lacks what. */
export interface NoteDigest {
  readonly name: string;
  readonly version: Version;
}

export interface ScheduleProtocol {
  note: {
    ask: {
      term: Term;
      notes: readonly ScheduleNote[];
      occurrences: readonly NotedOccurrence[];
      complete: boolean;
    };
    answer: NoteState;
  };
  /** `next` is where the following page begins; null at the end. */
  read: {
    ask: { term: Term; after: string | null };
    answer: NoteState & { notes: readonly ScheduleNote[]; next: string | null };
  };
  digest: {
    ask: { term: Term; after: string | null };
    answer: NoteState & { digests: readonly NoteDigest[]; next: string | null };
  };
  /** The newest occurrences. */
  history: {
    ask: { schedule: string; limit: number };
    answer: { occurrences: readonly NotedOccurrence[] };
  };
  noted: {
    ask: { schedule: string; instants: readonly number[] };
    answer: { occurrences: readonly NotedOccurrence[] };
  };
  place: {
    ask: { term: Term; runs: readonly Placing[] };
    answer: { verdicts: readonly PlaceVerdict[] };
  };
  job: { ask: { job: JobId }; answer: { status: JobStatus | null } };
  forget: { ask: { term: Term; names: readonly { name: string; version: Version }[] }; answer: object };
}

export type ScheduleRequestName = keyof ScheduleProtocol;
export type ScheduleRequestOf<Q extends ScheduleRequestName> = ScheduleProtocol[Q]["ask"];
export type ScheduleAnswerOf<Q extends ScheduleRequestName> = ScheduleProtocol[Q]["answer"];

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
const schedule = template.extend({
  name,
  timing,
  missed: z.string(),
  missedMax: z.int(),
  overlap: z.string(),
  paused: z.boolean(),
  createdAt: instant,
  updatedAt: instant,
  nextAt: instant.nullable(),
  lastFiredAt: instant.nullable(),
  lastJob: z.string().nullable(),
  leaderEpoch: whole,
});
const note = z.looseObject({
  name,
  version,
  schedule: schedule.nullable(),
  changedAt: instant,
  notedThrough: instant.nullable(),
  open: z.array(z.looseObject({ template: template.nullable(), runs: z.array(run) })),
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
const next = after;

export const SCHEDULE_PROTOCOL: Readonly<
  Record<ScheduleRequestName, { readonly ask: z.ZodType; readonly answer: z.ZodType }>
> = {
  note: {
    ask: z.looseObject({
      term,
      notes: z.array(note),
      occurrences: z.array(occurrence),
      complete: z.boolean(),
    }),
    answer: z.looseObject({ blank }),
  },
  read: {
    ask: z.looseObject({ term, after }),
    answer: z.looseObject({ blank, notes: z.array(note), next }),
  },
  digest: {
    ask: z.looseObject({ term, after }),
    answer: z.looseObject({
      blank,
      digests: z.array(z.looseObject({ name, version })),
      next,
    }),
  },
  history: {
    ask: z.looseObject({ schedule: name, limit: z.int().min(1).max(1_000) }),
    answer: z.looseObject({ occurrences: z.array(occurrence) }),
  },
  noted: {
    ask: z.looseObject({ schedule: name, instants: z.array(instant) }),
    answer: z.looseObject({ occurrences: z.array(occurrence) }),
  },
  place: {
    ask: z.looseObject({ term, runs: z.array(placing) }),
    answer: z.looseObject({ verdicts: z.array(z.enum(["stored", "already", "absent"])) }),
  },
  job: {
    ask: z.looseObject({ job: z.string().min(1) }),
    answer: z.looseObject({ status: z.string().nullable() }),
  },
  forget: {
    ask: z.looseObject({ term, names: z.array(z.looseObject({ name, version })) }),
    answer: z.looseObject({}),
  },
};

/**
 * A body stays below the limit that listeners have, and one call within its deadline. What is larger by itself (a schedule
 * with a long payload) goes alone.
 */
const BODY_CHARS = 256 * 1_024;

/** Cuts a list into pieces of at most `BODY_CHARS` as JSON and at most `limit` items; none is empty. */
export function* chunks<T>(items: readonly T[], limit = 500): Generator<T[]> {
  let piece: T[] = [];
  let chars = 0;
  for (const item of items) {
    const size = JSON.stringify(item).length;
    if (piece.length > 0 && (chars + size > BODY_CHARS || piece.length >= limit)) {
      yield piece;
      piece = [];
      chars = 0;
    }
    piece.push(item);
    chars += size;
  }
  if (piece.length > 0) yield piece;
}

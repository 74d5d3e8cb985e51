/** The timeline of one job: events, runs with their epochs, and its owners. */

import { z } from "zod";
import { parseJobId, type JobId } from "../../../core/ids.ts";
import {
  runsOf,
  timelineOf,
  type TimelineEvent,
  type TimelineHandoff,
} from "../../../core/jobs/job-timeline.ts";
import { assignmentSubject, type JournalEntry } from "../../../store/journal.ts";
import { IdParams } from "../../bodies/fields.ts";
import { toWire } from "../../schema/to-wire.ts";
import { JobErrorBody } from "../../bodies/job-body.ts";
import { answer, operation } from "../../operation.ts";
import type { JournalService } from "../../../observe/journal/journal.ts";
import { findJob, ownerOf } from "./jobs.ts";

const ENTRIES_MAX = 100;
const ASSIGNMENTS_MAX = 20;

const EventBody = z.object({
  at: z.string(),
  what: z.string(),
  node: z.string().nullable(),
  job_epoch: z.int().nullable(),
  owner_epoch: z.int().nullable(),
  leader_epoch: z.int().nullable(),
  message: z.string().nullable(),
});
const eventBody = toWire(EventBody);

const RunBody = z.object({
  job_epoch: z.int(),
  worker: z.string().nullable(),
  leader_epoch: z.int(),
  started_at: z.string(),
  ended_at: z.string().nullable(),
  outcome: z.string().describe("failed, interrupted, crashed, overdue, cancelled, completed or running"),
  error: JobErrorBody.nullable(),
});
const runBody = toWire(RunBody);

const HandoffBody = z.object({
  at: z.string(),
  from: z.string().nullable(),
  to: z.string(),
  owner_epoch: z.int(),
  reason: z.string(),
});
const handoffBody = toWire(HandoffBody);

export const getTimeline = operation("GET /jobs/{id}/timeline", {
  summary:
    "What happened to a job and when: its runs with worker and epochs, refused writes, changes of its owner",
  target: ownerOf,
  params: IdParams,
  replies: {
    200: z.object({
      job_id: z.string(),
      events: z.array(EventBody),
      runs: z.array(RunBody).describe("oldest first; of those that did not end the job, the last 20"),
      handoffs: z.array(HandoffBody),
    }),
  },
  async handler({ jobs, journal }, { params }) {
    const id = params.id as JobId;
    const job = await findJob(jobs, id);
    const [{ past, assignments }, entries] = await Promise.all([
      jobs.runs(id),
      journal.list({ subject: id, limit: ENTRIES_MAX }),
    ]);
    const handoffs = await handoffsOf(journal, assignments.slice(-ASSIGNMENTS_MAX));
    const runs = runsOf(job, past);
    const birthplace = parseJobId(id)?.birthplace ?? null;
    const events = timelineOf(job, birthplace, runs, handoffs, entries.map(eventOf));
    return answer(200, {
      job_id: id,
      events: events.map(eventBody),
      runs: runs.map(runBody),
      handoffs: handoffs.map(handoffBody),
    });
  },
});

async function handoffsOf(
  journal: JournalService,
  assignments: readonly number[],
): Promise<TimelineHandoff[]> {
  const entries = await Promise.all(
    assignments.map((assignment) =>
      journal.list({ kinds: ["handoff"], subject: assignmentSubject(assignment), limit: ENTRIES_MAX }),
    ),
  );
  return entries
    .flat()
    .map(({ at, detail }) => ({
      at,
      from: (detail["from"] as string | null) ?? null,
      to: String(detail["to"]),
      ownerEpoch: Number(detail["owner_epoch"]),
      reason: String(detail["reason"]),
    }))
    .sort((a, b) => a.at - b.at);
}

function eventOf({ at, kind, node, actor, detail }: JournalEntry): TimelineEvent {
  const refused = kind === "write.refused";
  const carried = detail["carried_epoch"];
  const words = refused ? detail["what"] : detail["operation"];
  return {
    at,
    what: refused ? "write_refused" : kind,
    node: actor ?? node,
    jobEpoch: refused && typeof carried === "number" ? carried : null,
    ownerEpoch: null,
    leaderEpoch: null,
    message: typeof words === "string" ? words : null,
  };
}

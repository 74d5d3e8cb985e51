/** Connects the recorders of a node to its events: the journal, rates of jobs, metrics, and the feed of job events. */

import { journalOf, type Journal } from "./journal/journal.ts";
import { refusedWrites } from "./journal/refused-writes.ts";
import { termJournal } from "./journal/term-journal.ts";
import type { Traffic } from "./traffic.ts";
import type { JobEventEmitter } from "../controller/events/job-event-emitter.ts";
import type { Membership } from "../leadership/coordination.ts";
import type { JobId } from "../core/ids.ts";
import type { NodeStatus } from "../core/node.ts";
import type { JobMetrics } from "./metrics/job-metrics.ts";
import type { LeaderMetrics } from "./metrics/leader-metrics.ts";
import type { NodeMetrics } from "./metrics/node-metrics.ts";
import type { NodeEvents } from "../platform/node-events.ts";
import type { Platform } from "../platform/platform.ts";
import { assignmentSubject, type JournalKind } from "../store/journal.ts";
import type { Store } from "../store/store.ts";

export interface NodeObservers extends Pick<Platform, "clock" | "log" | "identity"> {
  readonly version: string;
  readonly store: Pick<Store, "jobs" | "journal">;
  readonly membership: Pick<Membership, "nodes">;
  readonly traffic: Pick<Traffic, "submitted" | "finished">;
  readonly news: Pick<JobEventEmitter, "submitted" | "changed">;
  readonly metrics: {
    readonly jobs: Pick<JobMetrics, "submitted" | "submitFailed" | "recovered">;
    readonly leaders: Pick<LeaderMetrics, "changed" | "refused">;
    readonly node: Pick<NodeMetrics, "takenOver">;
  };
}

/** The services write to the store: they are started after it and stopped before it. */
export function observeNode(events: NodeEvents, observers: NodeObservers) {
  const { identity, store, membership, metrics } = observers;
  const journal = journalOf(observers, store.journal);
  const epochOf = async (job: JobId) => (await store.jobs.get(job))?.jobEpoch ?? null;
  const refused = refusedWrites(observers, journal, epochOf);
  const noteTerm = termJournal(observers, journal, membership);
  observeJobs(events, observers);
  observeMembership(events, observers, journal);
  events.on("write.refused", (refusal) => {
    metrics.leaders.refused(refusal);
    refused.add(refusal);
  });
  events.on("term.changed", (change) => {
    metrics.leaders.changed(change);
    noteTerm(change);
  });
  events.on("assignment.taken_over", ({ assignment, from, jobs, ownerEpoch, reason }) => {
    metrics.node.takenOver({ reason });
    journal.note({
      kind: "handoff",
      subject: assignmentSubject(assignment),
      detail: { assignment, from, to: identity.name, jobs, owner_epoch: ownerEpoch, reason },
    });
  });
  return { journal, services: [journal, refused] };
}

function observeJobs(events: NodeEvents, { traffic, news, metrics }: NodeObservers): void {
  events.on("jobs.submitted", ({ jobs, answers }) => {
    metrics.jobs.submitted(jobs);
    traffic.submitted(jobs);
    news.submitted(jobs, answers);
  });
  events.on("jobs.submit_failed", (error) => metrics.jobs.submitFailed(error));
  events.on("jobs.finished", (ended) => {
    for (const { queue, failed, jobs } of ended) traffic.finished(queue, failed, jobs);
  });
  events.on("jobs.recovered", (jobs) => {
    for (const { id, status, quarantined } of jobs) {
      metrics.jobs.recovered({ status }, quarantined);
      if (status !== "queued") traffic.finished(undefined, status === "failed");
      news.changed(id, status);
    }
  });
  events.on("schedule.fired", ({ jobs, storedHere }) => {
    if (storedHere) traffic.submitted(jobs);
    const answers = jobs.map(({ id }) => ({ id, status: "queued" as const }));
    news.submitted(jobs, answers);
  });
}

/** Each node notes its own changes; the leader notes the deaths that it found. */
function observeMembership(
  events: NodeEvents,
  { identity, version }: NodeObservers,
  journal: Pick<Journal, "note">,
): void {
  const { name, incarnation } = identity;
  const note = (kind: JournalKind, detail: Record<string, unknown> = {}): void =>
    journal.note({ kind, subject: name, detail: { incarnation, ...detail } });
  /** As the other nodes know it; null while they do not. */
  let known: NodeStatus | null = null;
  events.on("node.status", (status) => {
    const before = known;
    known = status === "left" ? null : status;
    if (status === before) return;
    if (status === "left" && before !== null) note("node.left");
    else if (status === "draining") note("node.draining");
    else if (status === "active" && before === "draining") note("node.resumed");
    else if (status === "active") note("node.joined", { version });
  });
  events.on("node.drained", ({ interrupted }) =>
    journal.note({ kind: "node.drained", subject: name, detail: { interrupted } }),
  );
  events.on("node.removed", (node) =>
    journal.note({ kind: "node.left", subject: node, detail: { reason: "it was removed by hand" } }),
  );
  events.on("nodes.died", ({ nodes, leaderEpoch }) => {
    for (const dead of nodes) {
      const detail = { incarnation: dead.incarnation, leader_epoch: leaderEpoch };
      journal.note({ kind: "node.dead", subject: dead.name, detail });
    }
  });
}

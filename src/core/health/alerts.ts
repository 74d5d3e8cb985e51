/**
 * The rules for alerts: facts about the cluster in, alerts out. Each alert says what is wrong and what to do about it.
 * Nothing acts on them automatically.
 */

import { servesQueue, type NodeInfo } from "../node.ts";

export const ALERT_CODES = [
  "no_leader",
  "node_dead",
  "node_lagging",
  "node_unreachable",
  "backlog_old",
  "queue_paused",
  "failures_rising",
  "schedule_late",
  "stale_writes",
  "version_mix",
  "store_degraded",
  "old_snapshot",
  "no_worker",
] as const;

export interface Alert {
  readonly code: (typeof ALERT_CODES)[number];
  readonly severity: "warning" | "critical";
  /** The node, queue or schedule; null for the cluster as a whole. */
  readonly subject: string | null;
  readonly message: string;
  readonly remedy: string;
  /** Wall time. */
  readonly since: number;
}

export interface Facts {
  readonly now: number;
  /** Whether enough nodes are present to serve callers. */
  readonly formed: boolean;
  readonly leader: string | null;
  /** Whether all nodes have one store, so that others can continue the jobs of a dead one. */
  readonly shared: boolean;
  readonly nodes: readonly Pick<NodeInfo, "name" | "status" | "alive" | "lastSeenAt" | "version" | "load">[];
  /** Queues with due jobs that nobody runs; `since`: the oldest of them. */
  readonly waiting: readonly { readonly queue: string; readonly since: number; readonly paused: boolean }[];
  /** The newest jobs that ended in the last minutes. */
  readonly ended: { readonly of: number; readonly failed: number };
  readonly late: readonly { readonly schedule: string; readonly dueAt: number }[];
  /** Writes that were refused because of an old epoch. */
  readonly refused: { readonly count: number; readonly lastAt: number } | null;
  readonly agents: number;
  /** Why the store cannot be used, or is too slow. */
  readonly storeTrouble: string | null;
  /** The transaction that has prevented the removal of dead rows for the longest time. */
  readonly oldestSnapshot: {
    readonly holder: string;
    readonly remedy: string;
    readonly ageMs: number;
  } | null;
}

/** Longer than a pause for garbage collection; a leader that is delayed for seconds loses its term. */
const LAG_MS = 250;
const LAG_MS_CRITICAL = 2_000;
const OLD_MS = 5 * 60_000;
const OLD_MS_CRITICAL = 60 * 60_000;
/** Share of the jobs that end. */
const FAILED_SHARE = 0.2;
const FAILED_SHARE_CRITICAL = 0.5;
/** Fewer are an accident. */
const FAILED_MIN = 3;
/** A leader that was just elected needs a moment to fire what was missed. */
const LATE_MS = 60_000;
/** A backup of a large database takes longer; a transaction of an application should not. */
const SNAPSHOT_MS = 60_000;
const SNAPSHOT_MS_CRITICAL = 15 * 60_000;
/** Alerts of one code: a hundred dead nodes are one message. */
const EACH_MAX = 5;

type Draft = Pick<Alert, "code" | "message" | "remedy"> &
  Partial<Pick<Alert, "severity" | "subject">> & { readonly since?: number | null };
type Found = readonly Draft[] | Draft | null;

/** An alert that was in `before` keeps its `since`. */
export function alertsOf(facts: Facts, before: readonly Alert[] = []): readonly Alert[] {
  const known = new Map(before.map((alert) => [keyOf(alert), alert.since]));
  return RULES.flatMap((rule) => bounded(each([rule(facts) ?? []].flat())))
    .map((draft): Alert => {
      const since = draft.since ?? known.get(keyOf(draft)) ?? facts.now;
      return { severity: "warning", subject: null, ...draft, since };
    })
    .sort(byWeight);
}

const RULES: readonly ((facts: Facts) => Found)[] = [
  storeDegraded,
  oldSnapshot,
  noLeader,
  noWorker,
  deadNodes,
  unreachableNodes,
  laggingNodes,
  oldBacklog,
  pausedQueues,
  failuresRising,
  lateSchedules,
  staleWrites,
  versionMix,
];

function storeDegraded({ storeTrouble }: Facts): Found {
  if (storeTrouble === null) return null;
  return {
    code: "store_degraded",
    severity: "critical",
    message: `the store is in trouble: ${storeTrouble}`,
    remedy:
      "look at the disk or the database; what runs goes on while it can, and nothing that was acknowledged is lost",
  };
}

function oldSnapshot({ oldestSnapshot }: Facts): Found {
  if (oldestSnapshot === null || oldestSnapshot.ageMs < SNAPSHOT_MS) return null;
  const { holder, remedy, ageMs } = oldestSnapshot;
  return {
    code: "old_snapshot",
    severity: ageMs >= SNAPSHOT_MS_CRITICAL ? "critical" : "warning",
    message: `a transaction has been open for ${inWords(ageMs)}, and dead rows cannot be removed meanwhile: ${holder}`,
    remedy: `commit it or end it (${remedy}); idle_in_transaction_session_timeout limits such transactions`,
  };
}

function noLeader({ leader, formed }: Facts): Found {
  if (leader !== null || !formed) return null;
  return {
    code: "no_leader",
    severity: "critical",
    message: "nobody leads: schedules do not fire, and jobs of dead nodes wait",
    remedy: "start a node with the role scheduler, or look at its log for why it is not elected",
  };
}

function noWorker({ waiting, nodes, agents }: Facts): Found {
  const open = waiting.filter(({ paused }) => !paused);
  if (open.length === 0 || agents > 0) return null;
  const workers = nodes.filter(({ alive, status, load }) => alive && status === "active" && load.slots !== 0);
  const unserved = open.filter(({ queue }) => !workers.some(({ load }) => servesQueue(load, queue)));
  return unserved.map(({ queue, since }) => ({
    code: "no_worker",
    severity: "critical",
    subject: queue,
    message: `jobs wait in queue ${queue}, and no living worker serves it`,
    remedy: "start a worker, resume one that is drained, or add the queue to its worker.queues",
    since,
  }));
}

function deadNodes({ nodes, shared }: Facts): Found {
  // The last incarnation in this order counts: a living one if there is any.
  const newest = new Map(
    nodes.toSorted((a, b) => Number(a.alive) - Number(b.alive)).map((node) => [node.name, node]),
  );
  return [...newest.values()]
    .filter(({ status }) => status === "dead")
    .map(({ name, lastSeenAt }) => ({
      code: "node_dead",
      subject: name,
      message: shared
        ? `node ${name} is dead; others have taken over what it ran`
        : `node ${name} is dead; the jobs that it keeps wait until it is back`,
      remedy: shared
        ? "start it again, or leave it: a dead node is forgotten after a while"
        : "start it again: its jobs go on where they were",
      since: lastSeenAt === 0 ? null : lastSeenAt,
    }));
}

function unreachableNodes({ nodes }: Facts): Found {
  const living = new Set(nodes.filter(({ alive }) => alive).map(({ name }) => name as string));
  const blind = new Map<string, string[]>();
  for (const { name, alive, load } of nodes) {
    if (!alive) continue;
    for (const { node, ok } of load.reach ?? []) {
      if (!ok && living.has(node)) blind.set(node, [...(blind.get(node) ?? []), name]);
    }
  }
  return [...blind].map(([name, from]) => ({
    code: "node_unreachable",
    subject: name,
    message: `node ${name} lives, but cannot be reached from ${from.sort().join(", ")}`,
    remedy: "look at the address that it tells (http.url, http.host) and at what filters the way to it",
  }));
}

function laggingNodes({ nodes }: Facts): Found {
  return nodes
    .filter(({ alive, load }) => alive && load.loopLagMs >= LAG_MS)
    .map(({ name, load: { loopLagMs } }) => ({
      code: "node_lagging",
      severity: loopLagMs >= LAG_MS_CRITICAL ? "critical" : "warning",
      subject: name,
      message: `node ${name} is held up: its event loop is ${Math.round(loopLagMs)} ms late`,
      remedy: 'give tasks that compute isolation: "thread", lower worker.concurrency, or give it more CPU',
    }));
}

function oldBacklog({ waiting, now }: Facts): Found {
  return waiting
    .filter(({ since, paused }) => !paused && now - since >= OLD_MS)
    .map(({ queue, since }) => ({
      code: "backlog_old",
      severity: now - since >= OLD_MS_CRITICAL ? "critical" : "warning",
      subject: queue,
      message: `a job in queue ${queue} has been waiting for ${inWords(now - since)}`,
      remedy: "add workers for it, or ask the job why it waits: baton jobs show ID",
      since: since + OLD_MS,
    }));
}

function pausedQueues({ waiting }: Facts): Found {
  return waiting
    .filter(({ paused }) => paused)
    .map(({ queue }) => ({
      code: "queue_paused",
      subject: queue,
      message: `queue ${queue} is paused, and jobs wait in it`,
      remedy: `resume it when its jobs may run: baton queues resume ${queue}`,
    }));
}

function failuresRising({ ended: { of, failed } }: Facts): Found {
  const share = of > 0 ? failed / of : 0;
  if (failed < FAILED_MIN || share < FAILED_SHARE) return null;
  return {
    code: "failures_rising",
    severity: share >= FAILED_SHARE_CRITICAL ? "critical" : "warning",
    message: `${failed} of the ${of} jobs that ended last have failed`,
    remedy: "look at the failures by their error; when the cause is gone, retry them all",
  };
}

function lateSchedules({ late, now }: Facts): Found {
  return late
    .filter(({ dueAt }) => now - dueAt >= LATE_MS)
    .map(({ schedule, dueAt }) => ({
      code: "schedule_late",
      subject: schedule,
      message: `schedule ${schedule} was due ${inWords(now - dueAt)} ago and has not fired`,
      remedy: "look whether somebody leads, and at the leader's log; run it by hand if it cannot wait",
      since: dueAt,
    }));
}

function staleWrites({ refused }: Facts): Found {
  if (!refused || refused.count === 0) return null;
  const many = refused.count === 1 ? "a write was" : `${refused.count} writes were`;
  return {
    code: "stale_writes",
    message: `${many} refused lately because somebody else had a newer number; nothing was harmed`,
    remedy:
      "look at which nodes were paused, cut off or overloaded: they believed for too long that they were in charge",
  };
}

function versionMix({ nodes }: Facts): Found {
  const versions = new Set(nodes.filter(({ alive }) => alive).map(({ version }) => version));
  if (versions.size < 2) return null;
  return {
    code: "version_mix",
    message: `nodes run different versions: ${[...versions].sort().join(", ")}`,
    remedy: "fine during an upgrade; finish it",
  };
}

function each(drafts: readonly Draft[]): readonly Draft[] {
  return [...new Map(drafts.map((draft) => [keyOf(draft), draft])).values()];
}

function bounded(drafts: readonly Draft[]): readonly Draft[] {
  if (drafts.length <= EACH_MAX) return drafts;
  const rest = drafts.slice(EACH_MAX - 1);
  const worst = rest.some(({ severity }) => severity === "critical") ? "critical" : "warning";
  const message = `${rest[0]!.message}; and ${rest.length - 1} more of the kind`;
  return [...drafts.slice(0, EACH_MAX - 1), { ...rest[0]!, severity: worst, subject: null, message }];
}

function keyOf({ code, subject }: Pick<Draft, "code" | "subject">): string {
  return `${code} ${subject ?? ""}`;
}

function byWeight(a: Alert, b: Alert): number {
  const weight = ({ severity }: Alert): number => (severity === "critical" ? 0 : 1);
  return weight(a) - weight(b) || a.since - b.since || (keyOf(a) < keyOf(b) ? -1 : 1);
}

/** Alerts found by several nodes: each once, the more severe and the earlier. */
export function mergeAlerts(lists: readonly (readonly Alert[])[]): readonly Alert[] {
  const merged = new Map<string, Alert>();
  for (const alert of lists.flat()) {
    const known = merged.get(keyOf(alert));
    if (!known) merged.set(keyOf(alert), alert);
    else {
      const since = Math.min(known.since, alert.since);
      merged.set(keyOf(alert), { ...(known.severity === "critical" ? known : alert), since });
    }
  }
  return [...merged.values()].sort(byWeight);
}

function inWords(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 2) return `${Math.floor(ms / 1_000)} s`;
  if (minutes < 120) return `${minutes} min`;
  return minutes < 2_880 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1_440)} days`;
}

/**
 * The rules of a supervisor: which of its two children should run, and when a child that ended is started again.
 *
 *   controller says      agent
 *   ---------------      -----
 *   may I lead?          off, and only then the answer is yes
 *   LEADER               off
 *   DRAINING             off
 *   STANDBY              on, once another node is seen to lead; until then unchanged
 *   nothing (it ended)   unchanged
 *
 * "Unchanged" is safe in both cases: a controller has to ask before it leads.
 */

import type { Role } from "./leadership/role.ts";

/** What a controller says of itself. */
export interface ControllerState {
  readonly role: Role;
  readonly epoch: number | null;
  /** Another node that is seen to lead; null if none is. */
  readonly leader: string | null;
}

/** Null: leave it as it is. */
export function agentWanted(standing: ControllerState | null): boolean | null {
  if (standing === null) return null;
  if (standing.role !== "STANDBY") return false;
  // A node that starts is nobody's standby before it has seen a leader: it may be about to lead itself.
  return standing.leader === null ? null : true;
}

export interface RestartPolicy {
  readonly firstDelayMs: number;
  readonly delayMsMax: number;
  /** So many crashes in a row are told as `degraded`. */
  readonly degradedAfter: number;
}

/** The wait before the next start, after so many crashes in a row (from 1). */
export function restartDelayMs(crashes: number, { firstDelayMs, delayMsMax }: RestartPolicy): number {
  // 2^1000 is infinite already, and the smaller of the two is taken.
  return Math.min(firstDelayMs * 2 ** (Math.max(crashes, 1) - 1), Math.max(delayMsMax, firstDelayMs));
}

/** A life that outlasts two of the longest waits ends a row of crashes: what happens after it is another story. */
export function steadyAfterMs({ firstDelayMs, delayMsMax }: RestartPolicy): number {
  return 2 * Math.max(delayMsMax, firstDelayMs);
}

export function isDegraded(crashes: number, { degradedAfter }: RestartPolicy): boolean {
  return crashes >= degradedAfter;
}

/** How long a child may take to end: asked at once, asked again to hurry, then killed. */
export interface WaitPolicy {
  readonly hurryMs: number;
  readonly killMs: number;
}

/**
 * For an agent whose controller waits to lead. It is hurried as soon as a second signal counts as one (cli/process/shutdown.ts takes what
 * comes within 250 ms for an echo): letting its jobs finish is of no use while no leader can take their results.
 */
export function beforeLeading(limitMs: number): WaitPolicy {
  return { hurryMs: Math.min(300, limitMs / 2), killMs: limitMs };
}

/**
 * What a node-controller ends with whose children ended so when they were asked: a child that had to be killed is a failure. One that
 * was asked before it could listen ends by the very signal that asked it, and that is none.
 */
export function exitCodeOf(
  ends: readonly { readonly code: number | null; readonly signal: string | null }[],
): number {
  return Math.max(0, ...ends.map(({ code, signal }) => code ?? (signal === "SIGTERM" ? 0 : 1)));
}

/** A job that waits, as far as an agent's idleness is judged by it. */
export interface WaitingJob {
  readonly task: string;
  readonly queue: string;
  /** Since when it could run, in ms of the wall clock. */
  readonly readyAt: number;
}

/** What is seen of an agent from outside. */
export interface AgentSnapshot {
  readonly capabilities: readonly string[];
  readonly running: number;
  readonly lastSeenAt: number;
}

export interface AgentWork {
  /** Null: nobody has heard of it. */
  readonly agent: AgentSnapshot | null;
  readonly waiting: readonly WaitingJob[];
  readonly pausedQueues: ReadonlySet<string>;
  /** Queues that it leases from; null for all. */
  readonly queues: ReadonlySet<string> | null;
  readonly now: number;
  readonly wedgedAfterMs: number;
}

/**
 * Why an agent looks wedged, null if it does not. It must be so in several looks in a row, because one look may fall
 * between the end of a job and the next lease. An agent with nothing to do is never wedged, whatever it says.
 */
export function hangOf(work: AgentWork): string | null {
  const { agent, now, wedgedAfterMs } = work;
  const since = now - wedgedAfterMs;
  const waits = work.waiting.filter(
    ({ task, queue, readyAt }) =>
      readyAt <= since &&
      !work.pausedQueues.has(queue) &&
      (work.queues?.has(queue) ?? true) &&
      (agent?.capabilities.includes(task) ?? true),
  );
  if (waits.length === 0) return null;
  if (agent === null) return "no controller has heard of it though there is work";
  if (agent.lastSeenAt <= since) return "it is silent though there is work for it";
  return agent.running === 0 ? "it runs nothing though there is work for it" : null;
}

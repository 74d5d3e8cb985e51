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
  /** Another node; null if none is seen to lead. */
  readonly leader: string | null;
}

export function agentWanted(standing: ControllerState | null): boolean | null {
  if (standing === null) return null;
  if (standing.role !== "STANDBY") return false;
  // A starting node is no standby before it has seen a leader: it may be about to lead.
  return standing.leader === null ? null : true;
}

export interface RestartPolicy {
  readonly firstDelayMs: number;
  readonly delayMsMax: number;
  /** Crashes in a row after which it is reported as `degraded`. */
  readonly degradedAfter: number;
}

/** After so many crashes in a row (from 1). */
export function restartDelayMs(crashes: number, { firstDelayMs, delayMsMax }: RestartPolicy): number {
  // 2^1000 is Infinity, so the minimum is taken.
  return Math.min(firstDelayMs * 2 ** (Math.max(crashes, 1) - 1), Math.max(delayMsMax, firstDelayMs));
}

/** A run that lasts for two of the longest waits ends a row of crashes. */
export function steadyAfterMs({ firstDelayMs, delayMsMax }: RestartPolicy): number {
  return 2 * Math.max(delayMsMax, firstDelayMs);
}

export function isDegraded(crashes: number, { degradedAfter }: RestartPolicy): boolean {
  return crashes >= degradedAfter;
}

/** A child is asked to end, asked again to hurry, then killed. */
export interface WaitPolicy {
  readonly hurryMs: number;
  readonly killMs: number;
}

/**
 * For an agent whose controller waits to lead. It is hurried as soon as a second signal counts as one
 * (cli/process/shutdown.ts ignores a repetition within 250 ms): no leader could take the results of its jobs.
 */
export function beforeLeading(limitMs: number): WaitPolicy {
  return { hurryMs: Math.min(300, limitMs / 2), killMs: limitMs };
}

/**
 * The exit code of a node-controller. A child that had to be killed is a failure; one that was ended by SIGTERM before
 * it could listen is not.
 */
export function exitCodeOf(
  ends: readonly { readonly code: number | null; readonly signal: string | null }[],
): number {
  return Math.max(0, ...ends.map(({ code, signal }) => code ?? (signal === "SIGTERM" ? 0 : 1)));
}

/** A waiting job. */
export interface WaitingJob {
  readonly task: string;
  readonly queue: string;
  /** Wall clock, in ms. */
  readonly readyAt: number;
}

export interface AgentSnapshot {
  readonly capabilities: readonly string[];
  readonly running: number;
  readonly lastSeenAt: number;
}

export interface AgentWork {
  /** Null: no controller has heard of it. */
  readonly agent: AgentSnapshot | null;
  readonly waiting: readonly WaitingJob[];
  readonly pausedQueues: ReadonlySet<string>;
  readonly queues: ReadonlySet<string> | null;
  readonly now: number;
  readonly wedgedAfterMs: number;
}

/**
 * Null if it does not hang. It must be so in several looks in a row, because one may fall between the end of a job and
 * the next lease. An agent without work never hangs, whatever it reports.
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

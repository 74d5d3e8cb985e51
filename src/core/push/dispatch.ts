/**
 * How many jobs a leader dispatches, to which workers, and in which batches.
 *
 * Workers report how many more jobs they would take. Jobs that are dispatched and not accepted yet are **outstanding**.
 * The leader has no more jobs outstanding than the workers demand: the backlog stays in the store, where an urgent job
 * still goes first.
 */

import { sumOf } from "../format-figures.ts";

export interface WorkScope {
  /** Null for all but `exceptQueues`, which are excluded in any case. */
  readonly queues: ReadonlySet<string> | null;
  readonly exceptQueues: ReadonlySet<string>;
  readonly tasks: ReadonlySet<string>;
}

export interface Demand extends WorkScope {
  /** Equal for workers of the same scope only. */
  readonly scope: string;
  readonly wants: number;
  readonly runningMax: number;
  readonly suspects: number;
}

export interface WorkerGroup extends Demand {
  readonly workers: number;
}

/** To all workers of a queue, or to those that know the task. */
export interface DispatchRoute {
  readonly queue: string;
  readonly task: string | null;
}

export interface Outstanding extends DispatchRoute {
  readonly jobs: number;
}

/** When an owner dies or hands over, this many long jobs change hands together. */
const ASSIGNMENT_MAX = 20;
/** For short jobs an assignment costs more than the jobs, so many share it. */
const SHORT_ASSIGNMENT_MAX = 250;
const SHORT_MESSAGE_MAX = 25;
/** With several messages for each worker, fast ones take more than others. */
const MESSAGES_PER_WORKER = 2;
/** More, and others wait for a long statement. */
const REQUEST_MAX = 1_000;
/** For short jobs, a smaller part of the demand is not worth a request. */
const SHORT_PORTION = 1 / 4;

export function worksOn(scope: Omit<WorkScope, "tasks">, queue: string): boolean {
  return scope.queues?.has(queue) !== false && !scope.exceptQueues.has(queue);
}

export function takesFrom(
  scope: WorkScope,
  { queue, task }: { readonly queue: string; readonly task: string },
): boolean {
  return scope.tasks.has(task) && worksOn(scope, queue);
}

export function listensTo(scope: WorkScope, { queue, task }: DispatchRoute): boolean {
  return worksOn(scope, queue) && (task === null || scope.tasks.has(task));
}

export function groupWorkers(workers: Iterable<Demand>): WorkerGroup[] {
  return [...Map.groupBy(workers, ({ scope }) => scope).values()].map((group) => ({
    ...group[0]!,
    workers: group.length,
    wants: sumOf(group, ({ wants }) => wants),
    runningMax: sumOf(group, ({ runningMax }) => runningMax),
    suspects: sumOf(group, ({ suspects }) => suspects),
  }));
}

/**
 * How many jobs to dispatch to a group now. Outstanding jobs that no other group receives are for this group alone.
 * Others may be taken by other groups, as far as those want more than they have elsewhere.
 */
export function dispatchLimit(
  group: WorkerGroup,
  groups: readonly WorkerGroup[],
  outstanding: readonly Outstanding[],
): number {
  const ours = outstanding.filter((route) => listensTo(group, route));
  const others = groups.filter((other) => other !== group && ours.some((route) => listensTo(other, route)));
  const onlyOurs = ours.filter((route) => !others.some((other) => listensTo(other, route)));
  let takenByOthers = 0;
  for (const other of others) {
    const elsewhere = outstanding.filter((route) => listensTo(other, route) && !listensTo(group, route));
    takenByOthers += Math.max(0, other.wants - sum(elsewhere));
  }
  const limit = group.wants - Math.max(sum(onlyOurs), sum(ours) - takenByOthers);
  if (limit <= 0 || (isShort(group) && limit < group.wants * SHORT_PORTION)) return 0;
  return Math.min(limit, REQUEST_MAX);
}

/** It expects to finish the first of them soon. */
function isShort(group: WorkerGroup): boolean {
  return group.wants > group.runningMax;
}

export function assignmentSize(group: WorkerGroup): number {
  return isShort(group) ? SHORT_ASSIGNMENT_MAX : ASSIGNMENT_MAX;
}

export function messageSize(group: WorkerGroup, jobs: number): number {
  if (!isShort(group)) return 1;
  const share = Math.floor(jobs / (group.workers * MESSAGES_PER_WORKER));
  return Math.min(Math.max(share, 1), SHORT_MESSAGE_MAX);
}

/** All workers of the queue, unless one of them does not know the task. */
export function routeOf(queue: string, task: string, groups: readonly WorkerGroup[]): DispatchRoute {
  const known = groups.every((group) => group.tasks.has(task) || !worksOn(group, queue));
  return { queue, task: known ? null : task };
}

function sum(outstanding: readonly Outstanding[]): number {
  return sumOf(outstanding, ({ jobs }) => jobs);
}

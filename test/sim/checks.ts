/**
 * What must be true after the faults have healed and time has passed. Nodes are asked for what they agree on; then all are
 * stopped and their disks are read.
 */

import { isFinal, type Job } from "../../src/core/jobs/job.ts";
import type { Store } from "../../src/store/store.ts";
import { PAUSED_QUEUE, SCHEDULES } from "./workload.ts";
import type { World } from "./world.ts";

/** A job that is due for longer should have begun: an idle node looks for work once a second. */
const RECENT_MS = 10_000;

export async function audit(world: World): Promise<void> {
  agree(world);
  const { timeline, nodes, history } = world;
  await timeline.during(Promise.all(nodes.map((node) => node.stop())));
  const jobs: Job[] = [];
  const settings: Settings[] = [];
  for (const disk of world.disks) {
    disk.crash();
    const store = disk.openStore(timeline);
    jobs.push(...(await store.jobs.list({ limit: 100_000 })).jobs);
    settings.push(await settingsIn(store));
    await store.close();
  }
  history.add(`jobs ${jobs.length}`);
  nothingLost(world, jobs);
  everythingFinished(world, jobs);
  occurrences(world, jobs);
  nothingTwice(world, jobs);
  changesKept(world, settings);
}

/** Of schedules, the numbers in their payloads. */
interface Settings {
  readonly paused: boolean;
  readonly numbers: ReadonlyMap<string, number | null>;
}

async function settingsIn({ queues, schedules }: Pick<Store, "queues" | "schedules">): Promise<Settings> {
  const numbers = new Map<string, number | null>();
  for (const name of Object.keys(SCHEDULES)) {
    const found = await schedules.get(name);
    numbers.set(name, found && (JSON.parse(found.payload) as { number: number }).number);
  }
  return { paused: await queues.isPaused(PAUSED_QUEUE), numbers };
}

/** All disks have the same, and it is the last change that was acknowledged or one whose answer was lost. */
function changesKept({ workload, history }: World, settings: readonly Settings[]): void {
  const check = (what: string, values: readonly unknown[], allowed: (value: unknown) => boolean): void => {
    if (new Set(values).size > 1) history.violated(`disks do not agree on ${what}: ${values.join(", ")}`);
    else if (!allowed(values[0]))
      history.violated(`an acknowledged change of ${what} is gone: ${String(values[0])}`);
  };
  for (const [name, changes] of workload.payloads)
    check(
      `schedule ${name}`,
      settings.map(({ numbers }) => numbers.get(name)),
      (value) => changes.allows(value),
    );
  check(
    `queue ${PAUSED_QUEUE}`,
    settings.map(({ paused }) => paused),
    (value) => workload.pauses.allows(value) || (value === false && workload.pauses.allows(null)),
  );
}

/** Nodes agree, and no job has waited for long. */
export async function isSettled(world: World): Promise<boolean> {
  if (disagreement(world) !== null) return false;
  const since = world.timeline.now() - RECENT_MS / 2;
  for (const disk of world.disks)
    for (const status of ["queued", "processing", "scheduled"] as const) {
      const { jobs } = await disk.store!.jobs.list({ limit: 10, status, until: since });
      if (jobs.length > 0) return false;
    }
  return true;
}

/** All nodes that run follow the same leader. */
export function follows({ nodes }: World): boolean {
  const terms = nodes.map(({ life }) =>
    life?.up ? (life.node.services.leadership.current()?.epoch ?? 0) : 0,
  );
  return terms[0]! > 0 && new Set(terms).size === 1;
}

function agree(world: World): void {
  const found = disagreement(world);
  if (found !== null) world.history.violated(found);
}

function disagreement({ nodes }: World): string | null {
  const views = nodes.map(({ name, life }) => {
    if (!life?.up) return `${name} does not run`;
    const { leadership, membership } = life.node.services;
    const term = leadership.current();
    const members = membership.nodes().map((node) => `${node.name} ${node.status}`);
    return `${term?.leader} in ${term?.epoch}, of ${members.join(", ")}`;
  });
  const wanted = nodes.map(({ name }) => `${name} active`).join(", ");
  if (new Set(views).size > 1) return `nodes do not agree: ${views.join(" | ")}`;
  const whole = views[0]!.endsWith(`, of ${wanted}`) && !views[0]!.startsWith("undefined");
  return whole ? null : `the cluster is not whole: ${views[0]}`;
}

function nothingLost({ workload, history }: World, jobs: readonly Job[]): void {
  const there = new Set(jobs.map(({ id }) => id));
  for (const { id, at } of workload.acknowledged) {
    if (!there.has(id) && !history.wasLost(id, at)) history.violated(`${id} was acknowledged and is gone`);
  }
}

/** A submit that nobody repeats is one job, whatever became of the node that it was given to. Who noted that it is to be taken back may lose its disk. */
function nothingTwice({ workload, history }: World, jobs: readonly Job[]): void {
  if (history.counts.diskLosses > 0) return;
  const made = Map.groupBy(jobs, ({ payload }) => (JSON.parse(payload) as { mark?: number }).mark);
  for (const mark of workload.marks) {
    const found = made.get(mark) ?? [];
    if (found.length > 1)
      history.violated(`a submit has ${found.length} jobs: ${found.map(({ id }) => id).join(", ")}`);
  }
}

/** Schedules go on to the last moment: what they made just now may still run. */
function everythingFinished({ history, timeline }: World, jobs: readonly Job[]): void {
  const since = timeline.now() - RECENT_MS;
  for (const { id, status, runAt } of jobs)
    if (!isFinal(status) && runAt < since) history.violated(`${id} is still ${status}`);
}

/** Each occurrence of a schedule has one job, from its acknowledgement to a little before the end. */
function occurrences({ workload, history, timeline, nodes, database }: World, jobs: readonly Job[]): void {
  for (const [name, since] of workload.schedules) {
    const everyMs = SCHEDULES[name]!;
    const made = Map.groupBy(
      jobs.filter((job) => job.schedule === name),
      ({ runAt }) => runAt,
    );
    for (const { id, owner } of database ? [] : [...made.values()].flat())
      if (!id.startsWith(`${owner}-`)) history.violated(`${id} is on the disk of ${owner}`);
    for (const [at, found] of made)
      if (found.length > 1)
        history.violated(
          `${name} at ${at} has ${found.length} jobs: ${found.map(({ id }) => id).join(", ")}`,
        );
    // Clocks of nodes differ by up to two seconds from ours.
    const first = Math.ceil((since + 3_000) / everyMs) * everyMs;
    const last = timeline.now() - everyMs - 5_000;
    for (let at = first; at <= last; at += everyMs) {
      history.counts.occurrences++;
      const excused = nodes.some((node) => history.lostAfter(node.name, at));
      if (!made.has(at) && !excused) history.violated(`${name} at ${at} has no job`);
    }
  }
}

/**
 * `batonjs/testing`: a whole node for a test, in memory and on a clock that the test moves. Jobs run as soon as they are due; what takes
 * time by the node's clock (delays, retries, schedules, timeouts) takes none.
 *
 *     await using baton = await testNode({ tasks: [charge] });
 *     await baton.submit(charge, payload);
 *     await baton.runAll();
 */

import { type Duration, durationMs } from "../core/duration.ts";
import { BatonError, nearest, reasonOf } from "../core/errors.ts";
import type { JobId } from "../core/ids.ts";
import type { Job } from "../core/jobs/job.ts";
import type { JobInfo, JobLogLine } from "../jobs/job-info.ts";
import type { WaitingReason } from "../jobs/job-service.ts";
import { systemClock } from "../platform/clock.ts";
import type { Log, LogFields } from "../platform/log.ts";
import { ManualClock } from "../platform/manual-clock.ts";
import { systemRandom } from "../platform/random.ts";
import { Baton } from "./baton.ts";
import type { NodeOptions } from "./node-options.ts";
import { openNode } from "./open-node.ts";

export interface TestNodeOptions extends Omit<NodeOptions, "store" | "http" | "config" | "data" | "log"> {
  /** Where its clock begins; 2026-01-01 in UTC unless told otherwise. */
  readonly now?: Date;
  /** `ignore`: a job that no task of this node takes is no failure of the test. */
  readonly unhandled?: "fail" | "ignore";
}

export interface TestJob extends JobInfo {
  /** Undefined unless the job is completed. */
  readonly result: unknown;
}

export interface TestLogLine extends JobLogLine {
  readonly job: JobId;
  readonly task: string;
}

/** What the node itself has logged. */
export interface TestNodeLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields: LogFields;
}

/** For a node that is alone in its memory, and whose clock a test may move by weeks: it looks at all that has happened. */
const CALM = {
  leader: { lease: "20d", renew: "5d", margin: "1d" },
  node: { heartbeat: "5d", deadAfter: "20d" },
  retention: { completed: "9999d", failed: "9999d", cancelled: "9999d" },
} as const;
/** Options of nodes that a test cannot have. */
const FIXED = ["store", "http", "config", "data", "log"] as const;
/** At most this much at once, so that leases are renewed. */
const LEAP_MS = 86_400_000;
/** Real time. Handlers may wait for something that is not of the node. */
const RUN_ALL_MS = 10_000;
/** So long may a handler be silent before time goes on without it: it may be waiting for a timeout. */
const PATIENCE_MS = 30;
const PAGE = 1_000;
const NEVER_RUN: ReadonlySet<WaitingReason["code"]> = new Set(["unknown_task", "queue_paused", "no_worker"]);

/** It is started. Dispose of it (`await using`), or stop it. */
export async function testNode(options: TestNodeOptions = {}): Promise<TestNode> {
  const { now, unhandled = "fail", ...rest } = options;
  const given = FIXED.filter((name) => Object.hasOwn(rest, name));
  if (given.length > 0) {
    const message = `testNode: ${given.join(", ")} cannot be given: a node of a test is in memory, and nothing listens or is written; use createNode for a real one`;
    throw new BatonError("BAD_OPTIONS", message, { field: given[0]! });
  }
  const clock = new ManualClock(now?.getTime());
  const lines: TestNodeLine[] = [];
  const { node, listeners } = await openNode(
    { ...CALM, ...rest, store: "memory", log: recordingLog(lines) },
    // In the middle: retries are not spread.
    { clock, random: { ...systemRandom, chance: () => 0.5 } },
  );
  const baton = new TestNode(node, listeners, { clock, lines, unhandled });
  await baton.start();
  return baton;
}

interface TestParts {
  readonly clock: ManualClock;
  readonly lines: readonly TestNodeLine[];
  readonly unhandled: "fail" | "ignore";
}

export class TestNode extends Baton {
  readonly #clock: ManualClock;
  readonly #unhandled: "fail" | "ignore";
  readonly #refused = new Set<JobId>();
  /** What the node itself has logged, which is nothing of importance while all is well. */
  readonly nodeLog: readonly TestNodeLine[];

  constructor(
    node: ConstructorParameters<typeof Baton>[0],
    listeners: ConstructorParameters<typeof Baton>[1],
    parts: TestParts,
  ) {
    super(node, listeners);
    this.#clock = parts.clock;
    this.#unhandled = parts.unhandled;
    this.nodeLog = parts.lines;
  }

  /** By the clock of the node. */
  get now(): Date {
    return new Date(this.#clock.now());
  }

  override start(): Promise<void> {
    return this.#moving(super.start());
  }

  override stop(options: { readonly hurry?: boolean } = {}): Promise<void> {
    return this.#moving(super.stop(options));
  }

  /** Also looks for jobs that nobody has run, and fails the test for them. */
  override async [Symbol.asyncDispose](): Promise<void> {
    if (this.stopped) return;
    try {
      await this.#settled();
      const waiting = await this.#list({ status: "queued" });
      // An error for which the test ends already is not thrown again: both would be hidden in a SuppressedError.
      await this.#refuseUnhandled(waiting.filter(({ id }) => !this.#refused.has(id)));
    } finally {
      await this.stop({ hurry: true });
    }
  }

  /** Until nothing is due. Fails for a job that nobody here will ever run, and for one that runs for more than ten seconds. */
  async runAll(): Promise<void> {
    const giveUpAt = systemClock.monotonic() + RUN_ALL_MS;
    for (;;) {
      await this.#settled();
      const due = await this.#due();
      if (due.length === 0) return;
      await this.#refuseUnhandled(due);
      if (due.every(({ status }) => status !== "processing") && this.#unhandled === "ignore") return;
      if (systemClock.monotonic() >= giveUpAt) throw tooLong(due);
      await systemClock.sleep(1);
    }
  }

  /** Moves the clock on. What becomes due in between runs at its own time, and makes what follows. */
  async advance(duration: Duration): Promise<void> {
    const until = this.#clock.monotonic() + lengthOf(duration);
    await this.#rest();
    for (;;) {
      const leftMs = until - this.#clock.monotonic();
      if (leftMs <= 0) break;
      const nextMs = (await this.#nextAt()) - this.#clock.now();
      await this.#clock.leap(Math.min(Math.max(nextMs, 1), leftMs, LEAP_MS));
      await this.#rest();
    }
    await this.#refuseUnhandled();
  }

  /** Oldest first. */
  async jobs(): Promise<TestJob[]> {
    const { jobs } = this.services;
    const found = (await this.#list()).map(async ({ id, status }) => ({
      ...(await this.job(id).job()),
      result: status === "completed" ? (JSON.parse((await jobs.result(id)) ?? "null") as unknown) : undefined,
    }));
    return Promise.all(found);
  }

  /** Of all jobs, in the order in which they were submitted. */
  async logs(): Promise<TestLogLine[]> {
    const found = (await this.#list()).map(async ({ id, task }) =>
      (await this.job(id).logs()).map((line) => ({ ...line, job: id, task })),
    );
    return (await Promise.all(found)).flat();
  }

  /** The call waits for the node's clock now and then, as at a start or a drain. */
  async #moving<Answer>(call: Promise<Answer>): Promise<Answer> {
    let over = false;
    const ended = call.finally(() => (over = true));
    ended.catch(() => {});
    for (await this.#clock.settle(); !over;) await this.#clock.advance(1);
    return ended;
  }

  /** Lets all happen that needs no time, and also what handlers wait for, as long as something happens. */
  async #rest(): Promise<void> {
    let before = "";
    let changedAt = systemClock.monotonic();
    for (;;) {
      await this.#settled();
      const due = await this.#due();
      if (due.every(({ status }) => status !== "processing")) return;
      const now = due.map(({ id, status, updatedAt }) => `${id} ${status} ${updatedAt}`).join();
      if (now !== before) changedAt = systemClock.monotonic();
      if (systemClock.monotonic() - changedAt > PATIENCE_MS) return;
      before = now;
      await systemClock.sleep(1);
    }
  }

  async #settled(): Promise<void> {
    await this.#clock.advance(0);
  }

  async #list(query: { readonly status?: Job["status"] } = {}): Promise<Job[]> {
    const found: Job[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.services.jobs.list({
        ...query,
        limit: PAGE,
        ...(cursor !== undefined && { cursor }),
      });
      found.push(...page.jobs);
      cursor = page.cursor ?? undefined;
    } while (cursor !== undefined);
    return found.reverse();
  }

  async #due(): Promise<Job[]> {
    const lists = [await this.#list({ status: "queued" }), await this.#list({ status: "processing" })];
    const scheduled = await this.#list({ status: "scheduled" });
    const now = this.#clock.now();
    return [...lists.flat(), ...scheduled.filter(({ runAt }) => runAt <= now)];
  }

  /** When something is to happen that a test may look at. */
  async #nextAt(): Promise<number> {
    const scheduled = await this.#list({ status: "scheduled" });
    const running = await this.#list({ status: "processing" });
    const schedules = await this.services.schedules.list();
    const now = this.#clock.now();
    return Math.min(
      ...scheduled.map(({ runAt }) => runAt),
      ...running
        .map(({ startedAt, timeoutMs }) => (startedAt ?? now) + (timeoutMs ?? Infinity))
        .filter((at) => at > now),
      ...schedules.filter(({ paused }) => !paused).map(({ nextAt }) => nextAt ?? Infinity),
    );
  }

  async #refuseUnhandled(due?: readonly Job[]): Promise<void> {
    if (this.#unhandled === "ignore") return;
    const waiting = (due ?? (await this.#list({ status: "queued" }))).filter(
      ({ status }) => status === "queued",
    );
    for (const { id, task } of waiting) {
      const job = await this.services.jobs.get(id);
      const reason = job?.waitingFor;
      if (!reason || !NEVER_RUN.has(reason.code)) continue;
      const near =
        reason.code === "unknown_task"
          ? nearest(
              task,
              this.tasks().map(({ name }) => name),
            )
          : null;
      this.#refused.add(id);
      const why = near ? `this node has no task "${task}"; did you mean "${near}"?` : reason.message;
      throw new BatonError("BAD_TASK", `nobody runs job ${id} of task ${task}: ${why}`, { job: id, task });
    }
  }
}

function tooLong(due: readonly Job[]): BatonError {
  const jobs = due.map(({ id, task, status }) => `${id} of task ${task} is ${status}`).join(", ");
  return new BatonError("TIMEOUT", `after ${RUN_ALL_MS / 1_000} s there is still work: ${jobs}`);
}

function lengthOf(duration: Duration): number {
  try {
    return durationMs(duration);
  } catch (error) {
    throw new BatonError("BAD_REQUEST", `duration ${reasonOf(error)}`, { field: "duration" });
  }
}

function recordingLog(lines: TestNodeLine[]): Log {
  const at = (level: TestNodeLine["level"]) => (fields: LogFields, message: string) =>
    void lines.push({ level, message, fields });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

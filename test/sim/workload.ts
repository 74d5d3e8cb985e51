/**
 * What callers do in a simulated world. A caller repeats a request that was not answered, at another node, with the same
 * key; what was answered is a promise that the checks hold the cluster to.
 */

import type { JobId } from "../../src/core/ids.ts";
import type { Clock } from "../../src/platform/clock.ts";
import type { World } from "./world.ts";

export interface Acknowledged {
  readonly id: JobId;
  readonly at: number;
}

const RETRY_MS = 700;
export const SCHEDULES: Readonly<Record<string, number>> = { fast: 2_000, slow: 5_000 };

/** The queue that is paused and resumed. It has no jobs. */
export const PAUSED_QUEUE = "mail";

interface Change {
  readonly value: unknown;
  readonly askedAt: number;
  /** Null as long as no answer has come: it may be carried out at any time. */
  ackedAt: number | null;
}

/** The changes of one value, to know what it may be at the end. */
export class Changes {
  readonly #made: Change[] = [];
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async make(value: unknown, ask: () => Promise<boolean>): Promise<boolean> {
    const change: Change = { value, askedAt: this.#clock.monotonic(), ackedAt: null };
    this.#made.push(change);
    const acked = await ask();
    if (acked) change.ackedAt = this.#clock.monotonic();
    return acked;
  }

  /** Not if another change was asked for, and acknowledged, after this one had been acknowledged. */
  allows(value: unknown): boolean {
    const acked = this.#made.filter(({ ackedAt }) => ackedAt !== null);
    const overwritten = ({ ackedAt }: Change): boolean =>
      ackedAt !== null && acked.some(({ askedAt }) => askedAt > ackedAt);
    if (acked.length === 0 && value === null) return true;
    return this.#made.some((change) => change.value === value && !overwritten(change));
  }
}

export class Workload {
  readonly acknowledged: Acknowledged[] = [];
  /** The marks of submits without a key, which nobody repeats. */
  readonly marks: number[] = [];
  /** By name: since when callers may count on it. */
  readonly schedules = new Map<string, number>();
  /** By the name of a schedule: the number in its payload. */
  readonly payloads = new Map<string, Changes>();
  readonly pauses: Changes;
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
    this.pauses = new Changes(world.timeline);
    for (const name of Object.keys(SCHEDULES)) this.payloads.set(name, new Changes(world.timeline));
  }

  /** Resolves when every request that was made in that time has its answer. */
  async run(ms: number): Promise<void> {
    const world = this.#world;
    const { timeline } = world;
    const until = timeline.monotonic() + ms;
    const open: Promise<void>[] = Object.keys(SCHEDULES).map((name) => this.#putSchedule(name));
    for (let number = 1; timeline.monotonic() < until; number++) {
      const dice = world.chance();
      if (dice < 0.6) open.push(this.#submit(number));
      else if (dice < 0.8) open.push(this.#submitOnce(number));
      else if (dice < 0.87) open.push(this.#cancel());
      else if (dice < 0.92) open.push(this.#retry());
      else if (dice < 0.95) open.push(this.#pauseQueue());
      else open.push(this.#changeSchedule(number));
      await timeline.sleep(world.between(50, 900));
    }
    await Promise.all(open);
  }

  async #submit(number: number): Promise<void> {
    const world = this.#world;
    const payload = {
      ms: Math.round(world.between(1, world.chance() < 0.1 ? 4_000 : 300)),
      fails: world.chance() < 0.15 ? 2 : 0,
    };
    const delay = world.chance() < 0.2 ? { delay_ms: Math.round(world.between(100, 5_000)) } : {};
    const body = { task: "work", payload, idempotency_key: `key-${number}`, ...delay };
    for (;;) {
      if (await this.#isAcknowledged(body)) return;
      await world.timeline.sleep(RETRY_MS);
    }
  }

  async #submitOnce(mark: number): Promise<void> {
    this.marks.push(mark);
    await this.#isAcknowledged({ task: "work", payload: { ms: 20, fails: 0, mark } });
  }

  async #isAcknowledged(body: object): Promise<boolean> {
    const { timeline, history } = this.#world;
    const reply = await this.#world.call("submit_jobs", { body });
    if (reply?.status !== 200) return false;
    const { job_id: id } = reply.body as { readonly job_id: JobId };
    history.add(`acknowledged ${id}`);
    history.counts.acknowledged++;
    this.acknowledged.push({ id, at: timeline.monotonic() });
    return true;
  }

  async #putSchedule(name: string): Promise<void> {
    const { timeline, history } = this.#world;
    while (!(await this.#put(name, 0))) await timeline.sleep(RETRY_MS);
    history.add(`schedule ${name} is acknowledged`);
    this.schedules.set(name, timeline.now());
  }

  #put(name: string, number: number): Promise<boolean> {
    const body = {
      task: "work",
      payload: { ms: 20, fails: 0, number },
      every_ms: SCHEDULES[name],
      missed: "run_all",
      missed_max: 1_000,
      overlap: "allow",
    };
    return this.payloads.get(name)!.make(number, async () => {
      const reply = await this.#world.call("put_schedule", { params: { name }, body });
      return reply?.status === 200 || reply?.status === 201;
    });
  }

  async #changeSchedule(number: number): Promise<void> {
    const name = this.#world.pick([...this.schedules.keys()]);
    if (name && (await this.#put(name, number))) this.#world.history.counts.changes++;
  }

  async #pauseQueue(): Promise<void> {
    const paused = this.#world.chance() < 0.5;
    const name = paused ? "pause_queue" : "resume_queue";
    await this.pauses.make(paused, async () => {
      const reply = await this.#world.call(name, { params: { name: PAUSED_QUEUE }, body: {} });
      return reply?.status === 200;
    });
  }

  async #cancel(): Promise<void> {
    const chosen = this.#world.pick(this.acknowledged);
    if (!chosen) return;
    const reply = await this.#world.call("cancel_job", { params: { id: chosen.id }, body: {} });
    if (reply && reply.status < 300) this.#world.history.counts.cancels++;
  }

  async #retry(): Promise<void> {
    const world = this.#world;
    const chosen = world.pick(this.acknowledged);
    if (!chosen) return;
    // Before the call: its answer may be lost.
    world.history.retried(chosen.id);
    await world.call("retry_job", { params: { id: chosen.id } });
  }
}

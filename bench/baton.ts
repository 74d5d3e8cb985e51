/** Baton as a subject: a whole node on a store of either kind, at its defaults, through the services that it offers. */

import { rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { loadSettings, type LoadOptions } from "../src/config/load-settings.ts";
import { defineTask } from "../src/jobs/tasks/task.ts";
import { createNode, type BatonNode } from "../src/node/baton-node.ts";
import { actions } from "./actions.ts";
import { chatty, CHATTY } from "./chatty-task.ts";
import { emptyTables } from "./postgres-tables.ts";
import { nowMs, payload, payloads, type Handler, type Payload, type Subject } from "./subject.ts";

export const TASK = "bench";
/** Jobs that a worker runs at a time, by default. */
const PLACES = 10;
/** Jobs in one submit while a backlog is piled up. */
const PILE = 1_000;

type Flags = NonNullable<LoadOptions["flags"]>;

export interface BatonOptions {
  readonly dir: string;
  /** Of a database; without it the store is a file in `dir`. */
  readonly url?: string;
  readonly serverPid?: number;
  /**
   * What a reset does with the store. `remove` is the default; `keep` goes on with it; `leave` starts another one
   * beside it, so that the disk has no less to write than with `keep`.
   */
  readonly onReset?: "remove" | "keep" | "leave";
  /** Without it, that of the process: names differ in a cluster, and processes come and go here. */
  readonly name?: string;
  /** False for a node that knows no task: it takes jobs and runs none. */
  readonly works?: boolean;
  readonly http?: boolean;
  /** Beside those that follow from the above: a node of a cluster of peers is told who the others are. */
  readonly settings?: Flags;
}

/**
 * Nobody is at work before `work()`: the first jobs take all the worker's places and wait there, so that the node does
 * not ask for more. That is any node whose workers are busy, and needs no setting that others would not use.
 */
export class Baton implements Subject {
  readonly #options: BatonOptions;
  #node: BatonNode | null = null;
  #handler: Handler | null = null;
  #gate = Promise.withResolvers<void>();
  #started = Promise.withResolvers<number>();
  /** Counts the stores that were left behind. */
  #left = 0;

  constructor(options: BatonOptions) {
    this.#options = options;
  }

  get node(): BatonNode {
    return this.#node!;
  }

  async reset(): Promise<void> {
    await this.close();
    const { dir, url, onReset = "remove" } = this.#options;
    if (onReset === "leave") this.#left++;
    if (onReset === "remove") await (url ? emptyTables(url) : rm(dir, { recursive: true, force: true }));
    await this.start();
  }

  async start(): Promise<void> {
    const {
      dir,
      url,
      name = `bench-${process.pid}`,
      works = true,
      http = false,
      settings: more,
    } = this.#options;
    this.rest();
    const task = defineTask({
      name: TASK,
      run: (payload, context) =>
        this.#handler?.(payload as Payload) ?? this.#wait(payload as Payload, context),
    });
    const place: Flags = url
      ? { store: url, "postgres.schema": this.#left === 0 ? "baton" : `baton_${this.#left}` }
      : { data: this.#left === 0 ? dir : `${dir}-${this.#left}` };
    const flags: Flags = { name, "http.port": "0", ...place, ...more };
    const { settings } = loadSettings({ cwd: import.meta.dirname, environment: {}, flags });
    const node = await createNode({ settings, tasks: works ? [task, chatty] : [], http });
    await node.start();
    this.#node = node;
  }

  submit(payload: Payload): Promise<unknown> {
    return this.node.services.jobs.submit([{ task: TASK, payload }]);
  }

  submitMany(payloads: readonly Payload[]): Promise<unknown> {
    return this.node.services.jobs.submit(payloads.map((payload) => ({ task: TASK, payload })));
  }

  work(handler: Handler): void {
    this.#handler = handler;
    this.#gate.resolve();
  }

  rest(): void {
    this.#handler = null;
    this.#gate = Promise.withResolvers<void>();
    this.#started = Promise.withResolvers<number>();
  }

  /** When a job first started without a handler; it waits until there is one. */
  hangs(): Promise<number> {
    return this.#started.promise;
  }

  /** Submits jobs that wait, spread over so many queues. A job of an unknown task is never claimed. */
  async pile(options: { jobs: number; queues: number; task?: string }): Promise<void> {
    const { jobs, queues, task = TASK } = options;
    for (let from = 0; from < jobs; from += PILE) {
      const batch = payloads(Math.min(PILE, jobs - from)).map((payload, n) => ({
        task,
        allowUnknown: true,
        queue: `queue-${(from + n) % queues}`,
        payload,
      }));
      await this.node.services.jobs.submit(batch);
    }
  }

  /** Runs as many jobs that talk as one worker runs at a time, until they have ended. */
  async chat(options: { seconds: number; linesPerSecond: number; progressPerSecond: number }): Promise<void> {
    const { seconds, linesPerSecond, progressPerSecond } = options;
    const payload = {
      seconds,
      linesPerSecond: linesPerSecond / PLACES,
      progressPerSecond: progressPerSecond / PLACES,
    };
    await this.node.services.jobs.submit(Array.from({ length: PLACES }, () => ({ task: CHATTY, payload })));
    await sleep(seconds * 1_000);
    while ((await this.unfinished()) > 0) await sleep(20);
  }

  async unfinished(): Promise<number> {
    let sum = 0;
    for (const { counts } of await this.node.services.queues.list())
      sum += counts.scheduled + counts.queued + counts.processing;
    return sum;
  }

  async close(): Promise<void> {
    await this.#node?.stop({ hurry: true });
    this.#node = null;
  }

  /** Until there is a handler, or the node is stopped. */
  async #wait(payload: Payload, context: { readonly signal: AbortSignal }): Promise<void> {
    const { signal } = context;
    this.#started.resolve(nowMs());
    const stopped = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
    await Promise.race([this.#gate.promise, stopped]);
    await (this.#handler?.(payload) ?? this.#wait(payload, context));
  }
}

export type BatonActions = Awaited<ReturnType<typeof open>>;

export async function open(options: BatonOptions) {
  const baton = new Baton(options);
  await baton.reset();
  return {
    ...actions(baton, options),
    url: () => baton.node.url,
    rest: () => baton.rest(),
    hangs: () => baton.hangs(),
    submitOne: async (): Promise<void> => void (await baton.submit(payload(0))),
    pile: (how: Parameters<Baton["pile"]>[0]) => baton.pile(how),
    chat: (how: Parameters<Baton["chat"]>[0]) => baton.chat(how),
  };
}

/** Baton as a subject: a whole node on the embedded store, at its defaults, through the services that it offers. */

import { rmSync } from "node:fs";
import { loadSettings } from "../src/config/load.ts";
import { defineTask } from "../src/jobs/task.ts";
import { createNode, type BatonNode } from "../src/node.ts";
import { actions, type Actions } from "./actions.ts";
import type { Handler, Payload, Subject } from "./subject.ts";

export const TASK = "bench";

export interface BatonOptions {
  readonly dir: string;
  /**
   * What a reset does with the store. `remove` is the default; `keep` goes on with it; `leave` starts another one
   * beside it, so that the disk has no less to write than with `keep`.
   */
  readonly onReset?: "remove" | "keep" | "leave";
  readonly http?: boolean;
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
  #dir: string;
  #resets = 0;

  constructor(options: BatonOptions) {
    this.#options = options;
    this.#dir = options.dir;
  }

  get node(): BatonNode {
    return this.#node!;
  }

  async reset(): Promise<void> {
    await this.close();
    const { dir, onReset = "remove" } = this.#options;
    if (onReset === "remove") rmSync(dir, { recursive: true, force: true });
    if (onReset === "leave") this.#dir = `${dir}-${++this.#resets}`;
    await this.start();
  }

  async start(): Promise<void> {
    this.#handler = null;
    this.#gate = Promise.withResolvers<void>();
    const task = defineTask({
      name: TASK,
      run: (payload, context) =>
        this.#handler?.(payload as Payload) ?? this.#wait(payload as Payload, context),
    });
    const { settings } = loadSettings({
      cwd: import.meta.dirname,
      environment: {},
      flags: { name: "bench", data: this.#dir, "http.port": "0" },
    });
    const node = await createNode({ settings, tasks: [task], http: this.#options.http ?? false });
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
  async #wait(payload: Payload, { signal }: { signal: AbortSignal }): Promise<void> {
    const stopped = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
    await Promise.race([this.#gate.promise, stopped]);
    await this.#handler!(payload);
  }
}

export async function open(options: BatonOptions): Promise<Actions> {
  const baton = new Baton(options);
  await baton.reset();
  return actions(baton);
}

/** Starts and stops a service in every awkward order. Every long-lived thing goes through it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "./fast-check.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { Service } from "../../src/platform/service.ts";

export interface Stressed<S extends Service> {
  readonly service: S;
  /** Uses the service while it runs; rejects when it does not work. */
  readonly works?: (service: S) => Promise<void>;
  /** Moves a manual clock while starts and stops are awaited. */
  readonly nudge?: () => Promise<void>;
  readonly close?: () => Promise<void>;
}

/** Nothing in a start or a stop takes that long in a test. */
const HANGS_AFTER_MS = 5_000;

interface Step {
  readonly call: "start" | "stop" | "dispose";
  /** Whether the next call comes only when this one has ended. */
  readonly wait: boolean;
}

const one = (call: Step["call"]): Step => ({ call, wait: true });
const together = (...calls: readonly Step["call"][]): Step[] => calls.map((call) => ({ call, wait: false }));

/** Tried in any case. */
const AWKWARD: readonly (readonly Step[])[] = [
  [one("stop"), one("start")],
  [one("start"), one("start")],
  [one("start"), one("stop"), one("stop")],
  [one("start"), one("stop"), one("start"), one("stop"), one("start")],
  [...together("start", "stop"), one("start")],
  [one("start"), ...together("dispose", "dispose", "dispose")],
];

export function lifecycleStress<S extends Service>(name: string, open: () => Promise<Stressed<S>>): void {
  const step = fc.record({ call: fc.constantFrom("start", "stop", "dispose"), wait: fc.boolean() });
  const steps: fc.Arbitrary<readonly Step[]> = fc.array(step, { maxLength: 8 });
  const orders = fc.asyncProperty(steps, (plan) => withService(open, (it) => carryOut(it, plan)));
  test(`${name}: starts and stops in any order, together or one by one, leave it in the state asked for last`, () =>
    fc.assert(orders, { numRuns: 30, examples: AWKWARD.map((plan) => [plan]) }));
}

/** Wherever it runs and nothing else is under way, it works. */
async function carryOut<S extends Service>(it: Stressed<S>, plan: readonly Step[]): Promise<void> {
  const { service } = it;
  let calls: PromiseLike<void>[] = [];
  for (const { call, wait } of plan) {
    calls.push(call === "dispose" ? service[Symbol.asyncDispose]() : service[call]());
    if (!wait) continue;
    await soon(it, Promise.all(calls));
    calls = [];
    if (call === "start") await it.works?.(service);
  }
  await soon(it, Promise.all(calls));
  if (plan.at(-1)?.call === "start") await it.works?.(service);
}

async function withService<S extends Service>(
  open: () => Promise<Stressed<S>>,
  body: (stressed: Stressed<S>) => Promise<void>,
): Promise<void> {
  const it = await open();
  try {
    await body(it);
  } finally {
    await soon(it, it.service.stop());
    await it.close?.();
  }
}

async function soon(it: Pick<Stressed<Service>, "nudge">, work: Promise<unknown>): Promise<void> {
  const done = new AbortController();
  const working = work.finally(() => done.abort());
  const late = systemClock
    .sleep(HANGS_AFTER_MS, done.signal)
    .then(() => assert.ok(done.signal.aborted, "a start or a stop hangs"));
  const nudging = (async () => {
    while (!done.signal.aborted && it.nudge) await it.nudge();
  })();
  await Promise.race([working, late]);
  await Promise.all([working, nudging]);
}

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

export function lifecycleStress<S extends Service>(name: string, open: () => Promise<Stressed<S>>): void {
  const stressed = (title: string, body: (stressed: Stressed<S>) => Promise<void>): void => {
    test(`${name}: ${title}`, () => withService(open, body));
  };

  stressed("a stop before the start does nothing, and a start still works after it", async (it) => {
    await soon(it, it.service.stop());
    await soon(it, it.service.start());
    await it.works?.(it.service);
  });

  stressed("a second start and a second stop do nothing", async (it) => {
    await soon(it, it.service.start());
    await soon(it, it.service.start());
    await it.works?.(it.service);
    await soon(it, it.service.stop());
    await soon(it, it.service.stop());
  });

  stressed("it works again after a stop and another start", async (it) => {
    for (let life = 0; life < 3; life++) {
      await soon(it, it.service.start());
      await it.works?.(it.service);
      await soon(it, it.service.stop());
    }
  });

  stressed("a stop asked for during the start comes after it", async (it) => {
    const starting = it.service.start();
    const stopping = it.service.stop();
    await soon(it, Promise.all([starting, stopping]));
    await soon(it, it.service.start());
    await it.works?.(it.service);
  });

  stressed("disposing of it stops it, once or many times at the same time", async (it) => {
    await soon(it, it.service.start());
    await soon(it, Promise.all(Array.from({ length: 5 }, () => it.service[Symbol.asyncDispose]())));
  });

  test(`${name}: starts and stops in any order, together or one by one, leave it in the state asked for last`, () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ call: fc.constantFrom("start", "stop"), wait: fc.boolean() }), { maxLength: 8 }),
        (plan) =>
          withService(open, async (it) => {
            const calls: Promise<void>[] = [];
            for (const { call, wait } of plan) {
              const done = call === "start" ? it.service.start() : it.service.stop();
              calls.push(done);
              if (wait) await soon(it, done);
            }
            await soon(it, Promise.all(calls));
            if (plan.at(-1)?.call === "start") await it.works?.(it.service);
          }),
      ),
      { numRuns: 25 },
    ));
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

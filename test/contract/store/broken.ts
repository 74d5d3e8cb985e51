/**
 * Stores that each break one promise. The contract must fail on every one of them, in the proof that names what is
 * broken: a suite that cannot fail proves nothing.
 */

import { memoryStore } from "../../support/memory-store.ts";
import type { JobStore, Store } from "../../../src/store/store.ts";
import { type OpenStore, reportRuns, settleRuns } from "../../support/store-world.ts";
import { BROKEN_ACCESS } from "./broken-access.ts";
import { BROKEN_FENCES } from "./broken-fences.ts";
import { BROKEN_KEYS } from "./broken-keys.ts";
import { BROKEN_INTERRUPTIONS } from "./broken-interruptions.ts";
import { BROKEN_LEADERS } from "./broken-leaders.ts";
import { BROKEN_LINES } from "./broken-lines.ts";
import { BROKEN_OVERDUE } from "./broken-overdue.ts";
import { BROKEN_OWNERSHIP } from "./broken-ownership.ts";
import type { BrokenStores, Replace, RunParts } from "./broken-row.ts";
import { BROKEN_RUNS } from "./broken-runs.ts";

export const BROKEN: BrokenStores = {
  ...BROKEN_RUNS,
  ...BROKEN_LINES,
  ...BROKEN_KEYS,
  ...BROKEN_LEADERS,
  ...BROKEN_FENCES,
  ...BROKEN_INTERRUPTIONS,
  ...BROKEN_OVERDUE,
  ...BROKEN_ACCESS,
  ...BROKEN_OWNERSHIP,
};

/** Opens memory stores with some methods replaced; with none replaced they are as good as the original. */
export function opening(replace: Replace): OpenStore {
  return async ({ clock }) => {
    const memory = memoryStore({ clock });
    const whole = { ...memory, jobs: { ...memory.jobs, ...partsOf(memory) } };
    const { jobs, purge = whole.purge, ...ports } = replace(whole);
    return {
      ...whole,
      jobs: patched(whole.jobs, jobs && { ...jobs, ...recording(whole.jobs, jobs) }),
      queues: patched(whole.queues, ports.queues),
      schedules: patched(whole.schedules, ports.schedules),
      terms: patched(whole.terms, ports.terms),
      samples: patched(whole.samples, ports.samples),
      agents: patched(whole.agents, ports.agents),
      access: patched(whole.access, ports.access),
      ownership: patched(whole.ownership, ports.ownership),
      purge,
    };
  };
}

function partsOf(store: Store): RunParts {
  return {
    settle: (settlements, fence) => settleRuns(store, settlements, fence),
    report: (reports, fence) => reportRuns(store, reports, fence),
  };
}

function recording(whole: RunParts, replaced: Partial<RunParts>): Partial<JobStore> {
  if (!replaced.settle && !replaced.report) return {};
  const parts = { ...whole, ...replaced };
  return {
    record: async ({ reports, settlements }, fence) => {
      const settles = settlements.length > 0 || reports.length === 0;
      return {
        reported: reports.length > 0 ? await parts.report(reports, fence) : [],
        settled: settles ? await parts.settle(settlements, fence) : [],
      };
    },
  };
}

function patched<T extends object>(port: T, replaced: Partial<T> = {}): T {
  return new Proxy(port, {
    get(target, key) {
      const method: unknown = Reflect.get(key in replaced ? replaced : target, key);
      return typeof method === "function" ? method.bind(target) : method;
    },
  });
}

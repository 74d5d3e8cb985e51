/**
 * Stores that each break one promise. The contract must fail on every one of them, in the proof that names what is
 * broken: a suite that cannot fail proves nothing.
 */

import { memoryStore } from "../../support/memory-store.ts";
import type { AccessStore } from "../../../src/store/access.ts";
import type { AgentStore } from "../../../src/store/agents.ts";
import type { OwnershipStore } from "../../../src/store/ownership.ts";
import type { SampleStore } from "../../../src/store/samples.ts";
import type { JobStore, QueueStore, ScheduleStore, Store, TermStore } from "../../../src/store/store.ts";
import type { OpenStore } from "../../support/store-world.ts";
import { BROKEN_ACCESS } from "./broken-access.ts";
import { BROKEN_FENCES } from "./broken-fences.ts";
import { BROKEN_INTERRUPTIONS } from "./broken-interruptions.ts";
import { BROKEN_LEADERS } from "./broken-leaders.ts";
import { BROKEN_LINES } from "./broken-lines.ts";
import { BROKEN_OVERDUE } from "./broken-overdue.ts";
import { BROKEN_OWNERSHIP } from "./broken-ownership.ts";
import { BROKEN_RUNS } from "./broken-runs.ts";

export interface Replaced {
  readonly jobs?: Partial<JobStore>;
  readonly queues?: Partial<QueueStore>;
  readonly schedules?: Partial<ScheduleStore>;
  readonly terms?: Partial<TermStore>;
  readonly samples?: Partial<SampleStore>;
  readonly agents?: Partial<AgentStore>;
  readonly access?: Partial<AccessStore>;
  readonly ownership?: Partial<OwnershipStore>;
  readonly purge?: Store["purge"];
}

export interface BrokenStore {
  /** The proof that must fail. */
  readonly caughtBy: string;
  /** What to put in the place of the whole store's methods. */
  readonly replace: (whole: Store) => Replaced;
}

/** By what they do wrong. */
export type BrokenStores = Readonly<Record<string, BrokenStore>>;

export const BROKEN: BrokenStores = {
  ...BROKEN_RUNS,
  ...BROKEN_LINES,
  ...BROKEN_LEADERS,
  ...BROKEN_FENCES,
  ...BROKEN_INTERRUPTIONS,
  ...BROKEN_OVERDUE,
  ...BROKEN_ACCESS,
  ...BROKEN_OWNERSHIP,
};

/** Opens memory stores with some methods replaced; with none replaced they are as good as the original. */
export function opening(replace: (whole: Store) => Replaced): OpenStore {
  return async ({ clock }) => {
    const whole = memoryStore({ clock });
    const {
      jobs,
      queues,
      schedules,
      terms,
      samples,
      agents,
      access,
      ownership,
      purge = whole.purge,
    } = replace(whole);
    return {
      guarantees: whole.guarantees,
      problem: whole.problem,
      jobs: patched(whole.jobs, jobs),
      queues: patched(whole.queues, queues),
      schedules: patched(whole.schedules, schedules),
      terms: patched(whole.terms, terms),
      samples: patched(whole.samples, samples),
      agents: patched(whole.agents, agents),
      journal: whole.journal,
      access: patched(whole.access, access),
      ownership: patched(whole.ownership, ownership),
      purge,
      close: () => whole.close(),
      [Symbol.asyncDispose]: () => whole.close(),
    };
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

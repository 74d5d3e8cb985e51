/**
 * Stores that each break one promise. The contract must fail on every one of them, in the proof that names what is
 * broken: a suite that cannot fail proves nothing.
 */

import { memoryStore } from "../../support/memory-store.ts";
import type { AccessStore } from "../../../src/store/access.ts";
import type { AgentStore } from "../../../src/store/agents.ts";
import type { OwnershipStore } from "../../../src/store/ownership.ts";
import type { SampleStore } from "../../../src/store/samples.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import type {
  JobStore,
  QueueStore,
  Report,
  ScheduleStore,
  Settlement,
  Store,
  TermStore,
  Verdict,
} from "../../../src/store/store.ts";
import { type OpenStore, reportRuns, settleRuns } from "../../support/store-world.ts";
import { BROKEN_ACCESS } from "./broken-access.ts";
import { BROKEN_FENCES } from "./broken-fences.ts";
import { BROKEN_INTERRUPTIONS } from "./broken-interruptions.ts";
import { BROKEN_LEADERS } from "./broken-leaders.ts";
import { BROKEN_LINES } from "./broken-lines.ts";
import { BROKEN_OVERDUE } from "./broken-overdue.ts";
import { BROKEN_OWNERSHIP } from "./broken-ownership.ts";
import { BROKEN_RUNS } from "./broken-runs.ts";

/** The two halves of `record`, so that a store can be broken in one of them. */
export interface RunParts {
  settle(settlements: readonly Settlement[], fence?: Term): Promise<readonly Verdict[]>;
  report(reports: readonly Report[], fence?: Term): Promise<readonly Verdict[]>;
}

export type WholeStore = Store & { readonly jobs: JobStore & RunParts };

export interface Replaced {
  readonly jobs?: Partial<JobStore & RunParts>;
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
  readonly replace: (whole: WholeStore) => Replaced;
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
export function opening(replace: (whole: WholeStore) => Replaced): OpenStore {
  return async ({ clock }) => {
    const memory = memoryStore({ clock });
    const whole = { ...memory, jobs: { ...memory.jobs, ...partsOf(memory) } };
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
      jobs: patched(whole.jobs, jobs && { ...jobs, ...recording(whole.jobs, jobs) }),
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

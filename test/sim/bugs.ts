/** Bugs that are planted into the nodes of a simulated world, to prove that it can fail: each breaks one promise. */

import type { Store } from "../../src/store/store.ts";
import type { Bug } from "./node.ts";
import type { WorldOptions } from "./world.ts";

export interface PlantedBug extends Bug {
  readonly fabric: NonNullable<WorldOptions["fabric"]>;
  /** The violation by which it is found. */
  readonly found: RegExp;
}

type Jobs = Store["jobs"];

export const BUGS: Readonly<Record<string, PlantedBug>> = {
  "one vote is a majority": {
    fabric: "peers",
    settings: (settings) => ({ ...settings, cluster: { ...settings.cluster, quorum: "none" } }),
    found: /was granted twice|went back/,
  },
  "a lost reply counts as a refusal": {
    fabric: "peers",
    transport: (transport) => {
      const call = transport.call.bind(transport);
      return Object.assign(transport, {
        call: async (...given: Parameters<typeof call>) => {
          const outcome = await call(...given);
          return outcome.outcome === "unknown" ? { ...outcome, outcome: "refused" as const } : outcome;
        },
      });
    },
    found: /has 2 jobs/,
  },
  "a job is acknowledged before it is stored": {
    fabric: "peers",
    store: (store, clock) =>
      withJobs(store, {
        submit: async (jobs, ...rest) => {
          clock.after(1_000, () => void store.jobs.submit(jobs, ...rest).catch(() => {}));
          return jobs.map(({ id }) => ({ id, status: "queued" as const, existed: false }));
        },
      }),
    found: /was acknowledged and is gone/,
  },
  "jobs of a dead node are not recovered": {
    fabric: "shared",
    store: (store) => withJobs(store, { recover: async () => [] }),
    found: /is still processing/,
  },
  "a second result of a job is accepted": {
    fabric: "shared",
    store: (store) =>
      withJobs(store, {
        record: async (batch, fence) => {
          const { reported, settled } = await store.jobs.record(batch, fence);
          const accepted = settled.map((verdict) => (verdict === "missing" ? verdict : "accepted"));
          return { reported, settled: accepted };
        },
      }),
    found: /two results of one run|was completed twice/,
  },
};

function withJobs(store: Store, broken: Partial<Jobs>): Store {
  return Object.assign(Object.create(store) as Store, { jobs: { ...store.jobs, ...broken } });
}

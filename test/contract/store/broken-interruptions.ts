import type { Abandoned, Store } from "../../../src/store/store.ts";
import type { BrokenStore, BrokenStores, Replaced } from "./broken.ts";

/** Recovers something else in place of some of it. */
function instead(of: (which: Abandoned) => Abandoned): BrokenStore["replace"] {
  return ({ jobs }): Replaced => ({
    jobs: { recover: (which, budgets, fence) => jobs.recover(of(which), budgets, fence) },
  });
}

const AT_ONCE = "what an agent held that was switched off returns to its place at once, as an interruption";
const THOSE = "only the leases of those holders end: of an agent all of them, of a request its own";
const UNHEARD =
  "leases of agents that ran out unheard were interrupted; those of nodes renew by themselves, and died";

/** About runs that were interrupted and not killed. */
export const BROKEN_INTERRUPTIONS: BrokenStores = {
  "waits until the leases of an agent that was switched off run out": {
    caughtBy: AT_ONCE,
    replace: instead((which) => (which.by === "holders" ? { by: "expiry", unheard: true } : which)),
  },

  "lets a run that was interrupted speak while its job waits": {
    caughtBy: AT_ONCE,
    replace: ({ jobs }: Store) => ({
      jobs: {
        async get(id) {
          const job = await jobs.get(id);
          return job && job.interruptions > 0 ? { ...job, jobEpoch: job.jobEpoch - 1 } : job;
        },
      },
    }),
  },

  "charges an interruption as a crash": {
    caughtBy: AT_ONCE,
    replace: ({ jobs }: Store) => ({
      jobs: {
        async recover(which, budgets, fence) {
          const found = await jobs.recover(which, budgets, fence);
          return found.map((job) => ({ ...job, interruptions: 0, crashes: job.crashes + job.interruptions }));
        },
      },
    }),
  },

  "ends leases of agents whose names only begin alike": {
    caughtBy: THOSE,
    replace: ({ jobs }: Store) => ({
      jobs: {
        recover: (which, budgets, fence) =>
          jobs.recover(
            which.by === "holders" ? { by: "holders", names: [...which.names, "agent:ada-2"] } : which,
            budgets,
            fence,
          ),
      },
    }),
  },

  "ends all leases of the agent of a request": {
    caughtBy: THOSE,
    replace: instead((which) =>
      which.by === "holders"
        ? { by: "holders", names: which.names.map((name) => name.split("/")[0]!) }
        : which,
    ),
  },

  "interrupts for ever": {
    caughtBy: "a job that was interrupted too often fails",
    replace: ({ jobs }: Store) => ({
      jobs: {
        recover: (which, budgets, fence) =>
          jobs.recover(which, { ...budgets, interruptionsMax: 1_000 }, fence),
      },
    }),
  },

  "blames agents for the silence of their leader": {
    caughtBy: UNHEARD,
    replace: instead((which) => (which.by === "expiry" ? { by: "expiry" } : which)),
  },

  "spares agents that are silent under their leader's eyes": {
    caughtBy: UNHEARD,
    replace: instead((which) => (which.by === "expiry" ? { by: "expiry", unheard: true } : which)),
  },
};

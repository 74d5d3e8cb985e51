import { type BrokenStores, inJobs, recovers } from "./broken-row.ts";

const AT_ONCE = "what an agent held that was switched off returns to its place at once, as an interruption";
const THOSE = "only the leases of those holders end: of an agent all of them, of a request its own";
const UNHEARD =
  "leases of agents that ran out unheard were interrupted; those of nodes renew by themselves, and died";

/** About runs that were interrupted and not killed. */
export const BROKEN_INTERRUPTIONS: BrokenStores = {
  "charges an interruption as a crash": [
    AT_ONCE,
    inJobs(({ jobs }) => ({
      async recover(which, budgets, fence) {
        const found = await jobs.recover(which, budgets, fence);
        return found.map((job) => ({ ...job, interruptions: 0, crashes: job.crashes + job.interruptions }));
      },
    })),
  ],
  "ends leases of agents whose names only begin alike": [
    THOSE,
    recovers((which) =>
      which.by === "holders" ? { by: "holders", names: [...which.names, "agent:ada-2"] } : which,
    ),
  ],
  "interrupts for ever": [
    "a job that was interrupted too often fails",
    recovers(
      (which) => which,
      (budgets) => ({ ...budgets, interruptionsMax: 1_000 }),
    ),
  ],
  "blames agents for the silence of their leader": [
    UNHEARD,
    recovers((which) => (which.by === "expiry" ? { by: "expiry" } : which)),
  ],
};

import type { NodeName } from "../../../src/core/ids.ts";
import type { Term } from "../../../src/core/term.ts";
import type { Store } from "../../../src/store/store.ts";
import type { BrokenStores } from "./broken.ts";

/** Whoever asks, it writes under the newest term. */
async function newest({ terms }: Store, fence: Term): Promise<Term> {
  return (await terms.read(fence.role)) ?? fence;
}

/** About terms and what only a leader may do. */
export const BROKEN_LEADERS: BrokenStores = {
  "recovers for an old leader": {
    caughtBy: "an old leader recovers nothing",
    replace: (whole) => ({
      jobs: {
        recover: async (which, budgets, fence) =>
          whole.jobs.recover(which, budgets, await newest(whole, fence)),
      },
    }),
  },

  "purges for an old leader": {
    caughtBy: "an old leader purges nothing",
    replace: (whole) => ({
      jobs: {
        purge: async (retention, limit, fence) =>
          whole.jobs.purge(retention, limit, await newest(whole, fence)),
      },
    }),
  },

  "fires for an old leader": {
    caughtBy: "an old leader fires nothing",
    replace: (whole) => ({
      schedules: {
        fire: async (firing, author, fence) =>
          whole.schedules.fire(firing, author, await newest(whole, fence)),
      },
    }),
  },

  "compares only whether a fence is lower": {
    caughtBy: "a term that the store has never seen recovers nothing",
    replace: (whole) => ({
      jobs: {
        async recover(which, budgets, fence) {
          const current = await newest(whole, fence);
          return whole.jobs.recover(which, budgets, fence.epoch >= current.epoch ? current : fence);
        },
      },
    }),
  },

  "recovers jobs of nodes whose names begin alike": {
    caughtBy: "incarnations and node names that begin alike are not mixed up",
    replace({ jobs }) {
      const nodes = new Set<NodeName>();
      return {
        jobs: {
          claim(request) {
            nodes.add(request.lease.split("/")[0] as NodeName);
            return jobs.claim(request);
          },
          async recover(which, budgets, fence) {
            if (which.by !== "node") return jobs.recover(which, budgets, fence);
            const found = await jobs.recover(which, budgets, fence);
            const alike = [...nodes].filter((node) => node !== which.node && node.startsWith(which.node));
            const more = await Promise.all(
              alike.map((node) => jobs.recover({ ...which, node }, budgets, fence)),
            );
            return [...found, ...more.flat()];
          },
        },
      };
    },
  },

  "never quarantines a job": {
    caughtBy: "a job that took its node down too often is quarantined",
    replace: ({ jobs }) => ({
      jobs: {
        recover: (which, budgets, fence) => jobs.recover(which, { ...budgets, crashesMax: Infinity }, fence),
      },
    }),
  },

  "purges without a limit": {
    caughtBy: "a purge removes no more than its limit at a time",
    replace: ({ jobs }) => ({
      jobs: { purge: (retention, _limit, fence) => jobs.purge(retention, Infinity, fence) },
    }),
  },

  "fires an occurrence twice": {
    caughtBy: "the same occurrence twice makes one job",
    replace: ({ jobs, schedules }) => ({
      schedules: {
        async fire(firing, author, fence) {
          const verdicts = await schedules.fire(firing, author, fence);
          const again = firing.occurrences.filter((_, index) => verdicts[index] === "already");
          await jobs.submit(
            again.flatMap(({ job }) => job ?? []),
            author,
          );
          return verdicts;
        },
      },
    }),
  },

  "fires a schedule that has changed": {
    caughtBy: "a schedule that changed since it was read is not fired at all",
    replace: ({ schedules }) => ({
      schedules: {
        async fire(firing, author, fence) {
          const current = await schedules.get(firing.schedule);
          return schedules.fire({ ...firing, expectedNextAt: current?.nextAt ?? null }, author, fence);
        },
      },
    }),
  },

  "lets occurrences overlap": {
    caughtBy: "an occurrence is skipped while the job before it is unfinished, if overlap is to be avoided",
    replace: ({ schedules }) => ({
      schedules: {
        fire: (firing, author, fence) => schedules.fire({ ...firing, overlap: "allow" }, author, fence),
      },
    }),
  },

  "moves a schedule on when its definition is put again": {
    caughtBy: "the same definition again changes nothing, not even the next occurrence",
    replace: ({ schedules }) => ({
      schedules: {
        async put(definition, nextAt) {
          const answer = await schedules.put(definition, nextAt);
          const schedule = await schedules.setPaused(definition.name, answer.schedule.paused, nextAt);
          return { ...answer, schedule: schedule! };
        },
      },
    }),
  },

  "grants the same epoch twice": {
    caughtBy: "epochs grow with every grant, whoever is granted",
    replace: ({ terms }) => ({
      terms: {
        async grant(role, candidate) {
          const held = await terms.read(role);
          return held?.leader === candidate.name ? held : terms.grant(role, candidate);
        },
      },
    }),
  },

  "admits two leaders of one epoch": {
    caughtBy: "the same term is admitted again, a foreign one of the same epoch is not",
    replace: ({ terms }) => ({
      terms: {
        async admit(term) {
          const held = await terms.read(term.role);
          return held?.epoch === term.epoch || terms.admit(term);
        },
      },
    }),
  },
};

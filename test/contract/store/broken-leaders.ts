import type { Term } from "../../../src/core/leadership/term.ts";
import type { Store } from "../../../src/store/store.ts";
import type { BrokenStores } from "./broken.ts";

/** Whoever asks, it writes under the newest term. */
export async function newest({ terms }: Store, fence: Term): Promise<Term> {
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
      purge: async (what, fence) => whole.purge(what, await newest(whole, fence)),
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

  "notes samples for an old leader": {
    caughtBy: "a sample of a superseded term is refused, and so is its purge",
    replace: (whole) => ({
      samples: { note: async (sample, fence) => whole.samples.note(sample, await newest(whole, fence)) },
    }),
  },

  "keeps samples for ever": {
    caughtBy: "samples older than their time are removed",
    replace: () => ({ purge: async () => 0 }),
  },

  "tells samples oldest first": {
    caughtBy: "samples are told newest first, with their instant and the epoch that wrote them",
    replace: ({ samples }) => ({
      samples: { list: async (limit) => [...(await samples.list(limit))].reverse() },
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

  "recovers what lives held that begin alike": {
    caughtBy: "lives, nodes and claimants that are called alike are not mixed up",
    replace({ jobs }) {
      const lives = new Set<string>();
      return {
        jobs: {
          claim(request) {
            lives.add(request.lease.split("/")[1]!);
            return jobs.claim(request);
          },
          recover(which, budgets, fence) {
            if (which.by !== "incarnations") return jobs.recover(which, budgets, fence);
            const alike = [...lives].filter((life) => which.incarnations.some((one) => life.startsWith(one)));
            return jobs.recover({ ...which, incarnations: alike }, budgets, fence);
          },
        },
      };
    },
  },

  "waits until the leases of ended lives run out": {
    caughtBy: "what ended lives held is recovered before their leases run out, and nothing of others",
    replace: ({ jobs }) => ({
      jobs: {
        recover: (which, budgets, fence) =>
          jobs.recover(which.by === "incarnations" ? { by: "expiry" } : which, budgets, fence),
      },
    }),
  },

  "takes every life for ended": {
    caughtBy: "no lives, or unknown ones, end no lease",
    replace: ({ jobs }) => ({
      jobs: {
        recover: (which, budgets, fence) =>
          jobs.recover(which.by === "incarnations" ? { by: "everybody", except: "" } : which, budgets, fence),
      },
    }),
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
    replace: ({ purge }) => ({
      purge: (what, fence) => purge(what.of === "jobs" ? { ...what, limit: Infinity } : what, fence),
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

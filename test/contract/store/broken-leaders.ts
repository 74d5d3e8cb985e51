import { type BrokenStores, IN_HISTORIES, inJobs, newest, recovers, unfenced } from "./broken-row.ts";

const RECOVERY = "for another leader there is no recovery of expired leases";

/** About terms and what only a leader may do. */
export const BROKEN_LEADERS: BrokenStores = {
  "recovers for an old leader": [RECOVERY, unfenced("jobs", "recover")],
  "purges for an old leader": [
    "for another leader there is no purge of jobs",
    (whole) => ({ purge: async (what, fence) => whole.purge(what, await newest(whole, fence)) }),
  ],
  "fires for an old leader": ["an old leader fires nothing", unfenced("schedules", "fire")],
  "notes samples for an old leader": ["for another leader there is no sample", unfenced("samples", "note")],
  "keeps samples for ever": ["samples older than their time are removed", () => ({ purge: async () => 0 })],
  "tells samples oldest first": [
    "samples are told newest first, with their instant and the epoch that wrote them",
    ({ samples }) => ({ samples: { list: async (limit) => [...(await samples.list(limit))].reverse() } }),
  ],
  "compares only whether a fence is lower": [
    RECOVERY,
    inJobs((whole) => ({
      async recover(which, budgets, fence) {
        const current = await newest(whole, fence);
        return whole.jobs.recover(which, budgets, fence.epoch >= current.epoch ? current : fence);
      },
    })),
  ],
  "recovers what lives held that begin alike": [
    "lives, nodes and claimants that are called alike are not mixed up",
    inJobs(({ jobs }) => {
      const lives = new Set<string>();
      return {
        claim(request) {
          lives.add(request.lease.split("/")[1]!);
          return jobs.claim(request);
        },
        recover(which, budgets, fence) {
          if (which.by !== "incarnations") return jobs.recover(which, budgets, fence);
          const alike = [...lives].filter((life) => which.incarnations.some((one) => life.startsWith(one)));
          return jobs.recover({ ...which, incarnations: alike }, budgets, fence);
        },
      };
    }),
  ],
  "waits until the leases of ended lives run out": [
    IN_HISTORIES,
    recovers((which) => (which.by === "incarnations" ? { by: "expiry" } : which)),
  ],
  "takes every life for ended": [
    IN_HISTORIES,
    recovers((which) => (which.by === "incarnations" ? { by: "everybody", except: "" } : which)),
  ],
  "never quarantines a job": [
    "a job that took its node down too often is quarantined",
    recovers(
      (which) => which,
      (budgets) => ({ ...budgets, crashesMax: Infinity }),
    ),
  ],
  "purges without a limit": [
    "a purge removes no more than its limit at a time",
    ({ purge }) => ({
      purge: (what, fence) => purge(what.of === "jobs" ? { ...what, limit: 1_000 } : what, fence),
    }),
  ],
  "fires an occurrence twice": [
    "the same occurrence twice makes one job",
    ({ jobs, schedules }) => ({
      schedules: {
        async fire(firing, author, fence) {
          const verdicts = await schedules.fire(firing, author, fence);
          const again = firing.occurrences.filter((_, index) => verdicts[index] === "already");
          const twice = again.flatMap(({ job }) => job ?? []);
          await jobs.submit(twice, author);
          return verdicts;
        },
      },
    }),
  ],
  "fires a schedule that has changed": [
    "a schedule that changed since it was read is not fired at all",
    ({ schedules }) => ({
      schedules: {
        async fire(firing, author, fence) {
          const current = await schedules.get(firing.schedule);
          return schedules.fire({ ...firing, expectedNextAt: current?.nextAt ?? null }, author, fence);
        },
      },
    }),
  ],
  "lets occurrences overlap": [
    "an occurrence is skipped while the job before it is unfinished, if overlap is to be avoided",
    ({ schedules }) => ({
      schedules: {
        fire: (firing, author, fence) => schedules.fire({ ...firing, overlap: "allow" }, author, fence),
      },
    }),
  ],
  "moves a schedule on when its definition is put again": [
    "the same definition again changes nothing, not even the next occurrence",
    ({ schedules }) => ({
      schedules: {
        async put(definition, nextAt) {
          const answer = await schedules.put(definition, nextAt);
          const schedule = await schedules.setPaused(definition.name, answer.schedule.paused, nextAt);
          return { ...answer, schedule: schedule! };
        },
      },
    }),
  ],
  "grants the same epoch twice": [
    "epochs grow with every grant, whoever is granted",
    ({ terms }) => ({
      terms: {
        async grant(role, candidate) {
          const held = await terms.read(role);
          return held?.leader === candidate.name ? held : terms.grant(role, candidate);
        },
      },
    }),
  ],
  "admits two leaders of one epoch": [
    "the same term is admitted again, a foreign one of the same epoch is not",
    ({ terms }) => ({
      terms: {
        async admit(term) {
          const held = await terms.read(term.role);
          return held?.epoch === term.epoch || terms.admit(term);
        },
      },
    }),
  ],
};

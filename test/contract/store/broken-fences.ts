import { authorUnder } from "../../../src/store/jobs.ts";
import type { Agent } from "../../../src/store/agents.ts";
import type { BrokenStores } from "./broken.ts";
import { newest } from "./broken-leaders.ts";

/** About writes that carry a term though anybody may make them, and about agents. */
export const BROKEN_FENCES: BrokenStores = {
  "submits whatever the term": {
    caughtBy: "under any other term nothing is submitted",
    replace: ({ jobs }) => ({
      jobs: {
        submit: (wanted, author, wakes, fence) => jobs.submit(wanted, authorUnder(author, fence), wakes),
      },
    }),
  },

  "claims whatever the term": {
    caughtBy: "under any other term nothing is claimed, and no lease is opened or prolonged",
    replace: ({ jobs }) => ({
      jobs: {
        claim: ({ fence, ...request }) =>
          jobs.claim({ ...request, author: authorUnder(request.author, fence) }),
      },
    }),
  },

  "lets claims that find nothing pass whatever the term": {
    caughtBy: "under any other term nothing is claimed, and no lease is opened or prolonged",
    replace: ({ jobs }) => ({
      jobs: {
        claim: ({ fence, ...request }) =>
          jobs.claim(request.tasks.has("unknown") ? request : { ...request, fence }),
      },
    }),
  },

  "settles whatever the term": {
    caughtBy: "under any other term no run ends, however it would",
    replace: (whole) => ({
      jobs: {
        settle: async (settlements, fence) =>
          whole.jobs.settle(settlements, fence && (await newest(whole, fence))),
      },
    }),
  },

  "reports whatever the term": {
    caughtBy: "under any other term nothing is reported, also not about a job that is gone",
    replace: (whole) => ({
      jobs: {
        report: async (reports, fence) => whole.jobs.report(reports, fence && (await newest(whole, fence))),
      },
    }),
  },

  "renews whatever the term": {
    caughtBy: "under any other term no lease is renewed",
    replace: ({ jobs }) => ({ jobs: { renew: (lease, ttlMs) => jobs.renew(lease, ttlMs) } }),
  },

  "compares the term and then settles without it": {
    caughtBy: "a job shows the epoch of the term that its run ended under, however it did",
    replace: ({ jobs }) => ({
      jobs: {
        async settle(settlements, fence) {
          await jobs.settle([], fence);
          return jobs.settle(settlements);
        },
      },
    }),
  },

  "compares the term and then reports without it": {
    caughtBy: "a job shows the epoch of the term that its run last reported under",
    replace: ({ jobs }) => ({
      jobs: {
        async report(reports, fence) {
          await jobs.report([], fence);
          return jobs.report(reports);
        },
      },
    }),
  },

  "compares the term and then claims without it": {
    caughtBy: "a job shows the epoch of the term that it was submitted and claimed under",
    replace: ({ jobs }) => ({
      jobs: {
        async claim({ fence, ...request }) {
          if (fence) await jobs.claim({ ...request, limit: 0, fence });
          return jobs.claim(request);
        },
      },
    }),
  },

  "writes about agents for an old leader": {
    caughtBy: "an old leader neither sees, removes nor forgets an agent",
    replace: (whole) => ({
      agents: { remove: async (name, fence) => whole.agents.remove(name, await newest(whole, fence)) },
    }),
  },

  "forgets a removed agent at once": {
    caughtBy: "a removed agent leaves a tombstone, and is removed once",
    replace: ({ agents }) => ({ agents: { list: () => agents.list(false) } }),
  },

  "shows removed agents to everybody": {
    caughtBy: "a removed agent leaves a tombstone, and is removed once",
    replace: ({ agents }) => ({ agents: { list: () => agents.list(true) } }),
  },

  "leaves a removed agent removed when it is seen": {
    caughtBy: "an agent that was removed is back when it is seen",
    replace({ agents }) {
      const removed = new Set<string>();
      return {
        agents: {
          async remove(name, fence) {
            removed.add(name);
            return agents.remove(name, fence);
          },
          seen: (seen, fence) =>
            agents.seen(
              seen.filter(({ name }) => !removed.has(name)),
              fence,
            ),
        },
      };
    },
  },

  "counts a tombstone from when its agent was seen last": {
    caughtBy: "a tombstone stands for so long from the removal on",
    replace: ({ agents, purge }) => ({
      async purge(what, fence) {
        const all = await agents.list(true);
        const over = ({ removedAt, lastSeenAt }: Agent): boolean =>
          what.of === "agents" && removedAt !== null && removedAt - lastSeenAt >= what.ageMs;
        return (await purge(what, fence)) + all.filter(over).length;
      },
    }),
  },

  "remembers an agent from when it was seen last": {
    caughtBy: "an agent that is seen again is refreshed, and keeps the instant of the first time",
    replace: ({ agents }) => ({
      agents: {
        list: async (withRemoved) =>
          (await agents.list(withRemoved)).map((each) => ({ ...each, firstSeenAt: each.lastSeenAt })),
      },
    }),
  },
};

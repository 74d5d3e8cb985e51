import type { Agent, AgentStore } from "../../../src/store/agents.ts";
import { authorUnder } from "../../../src/store/jobs.ts";
import { type BrokenStores, claims, inJobs, type Replace, unfenced } from "./broken-row.ts";

function inAgents(of: (agents: AgentStore) => Partial<AgentStore>): Replace {
  return ({ agents }) => ({ agents: of(agents) });
}

const NOTHING_CLAIMED = "under any other term nothing is claimed, and no lease is opened or prolonged";
const TOMBSTONE = "a removed agent leaves a tombstone, and is removed once";

/** About writes that carry a term though anybody may make them, and about agents. */
export const BROKEN_FENCES: BrokenStores = {
  "submits whatever the term": [
    "under any other term nothing is submitted",
    inJobs(({ jobs }) => ({
      submit: (wanted, author, wakes, fence) => jobs.submit(wanted, authorUnder(author, fence), wakes),
    })),
  ],
  "claims whatever the term": [
    NOTHING_CLAIMED,
    claims(({ fence, ...request }) => ({ ...request, author: authorUnder(request.author, fence) })),
  ],
  "lets claims that find nothing pass whatever the term": [
    NOTHING_CLAIMED,
    claims(({ fence, ...request }) => (request.tasks.has("unknown") ? request : { ...request, fence })),
  ],
  "settles whatever the term": [
    "under any other term no run ends, however it would",
    unfenced("jobs", "settle"),
  ],
  "reports whatever the term": [
    "under any other term nothing is reported, also not about a job that is gone",
    unfenced("jobs", "report"),
  ],
  "renews whatever the term": [
    "under any other term no lease is renewed",
    inJobs(({ jobs }) => ({ renew: (lease, ttlMs) => jobs.renew(lease, ttlMs) })),
  ],
  "compares the term and then settles without it": [
    "a job shows the epoch of the term that its run ended under, however it did",
    inJobs(({ jobs }) => ({
      async settle(settlements, fence) {
        await jobs.settle([], fence);
        return jobs.settle(settlements);
      },
    })),
  ],
  "compares the term and then reports without it": [
    "a job shows the epoch of the term that its run last reported under",
    inJobs(({ jobs }) => ({
      async report(reports, fence) {
        await jobs.report([], fence);
        return jobs.report(reports);
      },
    })),
  ],
  "compares the term and then claims without it": [
    "a job shows the epoch of the term that it was submitted and claimed under",
    inJobs(({ jobs }) => ({
      async claim({ fence, ...request }) {
        if (fence) await jobs.claim({ ...request, limit: 0, fence });
        return jobs.claim(request);
      },
    })),
  ],
  "writes about agents for an old leader": [
    "for another leader there is no removal of an agent",
    unfenced("agents", "remove"),
  ],
  "forgets a removed agent at once": [TOMBSTONE, inAgents((agents) => ({ list: () => agents.list(false) }))],
  "leaves a removed agent removed when it is seen": [
    "an agent that was removed is back when it is seen",
    inAgents((agents) => {
      const removed = new Set<string>();
      return {
        async remove(name, fence) {
          removed.add(name);
          return agents.remove(name, fence);
        },
        async seen(seen, fence) {
          const others = seen.filter(({ name }) => !removed.has(name));
          return agents.seen(others, fence);
        },
      };
    }),
  ],
  "counts a tombstone from when its agent was seen last": [
    "a tombstone stands for so long from the removal on",
    ({ agents, purge }) => ({
      async purge(what, fence) {
        const all = await agents.list(true);
        const over = ({ removedAt, lastSeenAt }: Agent): boolean =>
          what.of === "agents" && removedAt !== null && removedAt - lastSeenAt >= what.ageMs;
        return (await purge(what, fence)) + all.filter(over).length;
      },
    }),
  ],
  "remembers an agent from when it was seen last": [
    "an agent that is seen again is refreshed, and keeps the instant of the first time",
    inAgents((agents) => ({
      async list(withRemoved) {
        const all = await agents.list(withRemoved);
        return all.map((each) => ({ ...each, firstSeenAt: each.lastSeenAt }));
      },
    })),
  ],
};

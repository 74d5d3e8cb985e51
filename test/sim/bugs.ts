/** Bugs that are planted into the nodes of a simulated world, to prove that it can fail: each breaks one promise. */

import { hasCode } from "../../src/core/errors.ts";
import type { Term } from "../../src/core/leadership/term.ts";
import type { FoundNotes, NotePage } from "../../src/store/schedule-notes.ts";
import type { Store } from "../../src/store/store.ts";
import type { Bug } from "./node.ts";
import type { WorldOptions } from "./world.ts";

export interface PlantedBug extends Bug {
  readonly fabric: NonNullable<WorldOptions["fabric"]>;
  readonly found: RegExp;
  /** A seed that found it, to be tried first; a change of the nodes may make it another. */
  readonly seed?: number;
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
    seed: 6,
  },
  "a job that was placed twice is not taken back": {
    fabric: "peers",
    transport: (transport) => {
      const call = transport.call.bind(transport);
      return Object.assign(transport, {
        call: (...given: Parameters<typeof call>): ReturnType<typeof call> =>
          given[1].path.startsWith("/peer/retractions")
            ? Promise.resolve({ outcome: "refused", reason: "lost" })
            : call(...given),
      });
    },
    found: /a submit has 2 jobs/,
    seed: 11,
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
  "a vote is answered before it is on disk": {
    fabric: "peers",
    files: (files, clock) => ({
      ...files,
      replace: async (path, text) => {
        clock.after(500, () => void files.replace(path, text));
      },
    }),
    found: /was granted twice|went back|two lead/,
    seed: 6,
  },
  "a stale term is accepted": {
    fabric: "peers",
    store: (store) => {
      const notes = store.scheduleNotes!;
      const write: typeof notes.write = async (batch, term) => {
        try {
          return await notes.write(batch, term);
        } catch (error) {
          if (!hasCode(error, "STALE_EPOCH")) throw error;
          return notes.write(batch, (await store.terms.read(term.role))!);
        }
      };
      return withNotes(store, { write });
    },
    found: /accepted scheduleNotes.write under term/,
    seed: 2,
  },
  "nodes conceal their schedules from a new leader": {
    fabric: "peers",
    store: (store) => {
      const notes = store.scheduleNotes!;
      const read = async (page: NotePage, term?: Term): Promise<FoundNotes> => {
        const found = await (term ? notes.read(page, term) : notes.read(page as never));
        return term ? { ...found, notes: [] } : found;
      };
      return withNotes(store, { read: read as typeof notes.read });
    },
    found: /has no job|has 2 jobs|do not agree on|is gone/,
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

type Notes = NonNullable<Store["scheduleNotes"]>;

function withNotes(store: Store, broken: Partial<Notes>): Store {
  const scheduleNotes = new Proxy(store.scheduleNotes!, {
    get: (notes, key) => broken[key as keyof Notes] ?? notes[key as keyof Notes].bind(notes),
  });
  return Object.assign(Object.create(store) as Store, { scheduleNotes });
}

function withJobs(store: Store, broken: Partial<Jobs>): Store {
  return Object.assign(Object.create(store) as Store, { jobs: { ...store.jobs, ...broken } });
}

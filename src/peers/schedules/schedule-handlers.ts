/** Answers the requests of other nodes about schedules. A leader asks itself through the same handlers. */

import type { Term } from "../../core/leadership/term.ts";
import type { Platform } from "../../platform/platform.ts";
import type { FoundNotes, ScheduleNotes } from "../../store/schedule-notes.ts";
import type { JobStore, ScheduleStore } from "../../store/store.ts";
import type { PeerHandlers } from "../rpc/peer-rpc.ts";
import { chunks } from "../rpc/schedule-messages.ts";

export type ScheduleRoute = keyof ReturnType<typeof scheduleHandlers>;
export type ScheduleHandlers = Pick<PeerHandlers, ScheduleRoute>;

export interface ReplicaStore {
  readonly schedules: Pick<ScheduleStore, "get" | "list" | "history">;
  readonly scheduleNotes: ScheduleNotes;
  readonly jobs: Pick<JobStore, "get">;
}

export interface ScheduleHandlersOptions {
  readonly store: ReplicaStore;
  /** Where members come and go: what this node remembers of its membership. */
  readonly membership?: {
    readonly caughtUp: string;
    catchUp(entry: string): Promise<void>;
  };
  /** False while this node drains: it takes no new jobs, and says so before it has any part in them. */
  readonly accepts: () => boolean;
  /** Jobs were stored here, or a queue was resumed, so the worker should claim. */
  readonly onReady: () => void;
}

/** Notes and digests on one page; a page of notes is also cut where it grows too large for one body. */
const PAGE_NOTES = 200;
const PAGE_DIGESTS = 1_000;

export function scheduleHandlers(
  { identity, events }: Pick<Platform, "identity" | "events">,
  { store, membership, accepts, onReady }: ScheduleHandlersOptions,
) {
  const notes = store.scheduleNotes;
  const page = (term: Term, after: string | null, limit: number): Promise<FoundNotes> =>
    events.fenced("scheduleNotes.read", notes.read({ after, limit }, term));
  const caughtUp = (): string => membership?.caughtUp ?? "";
  return {
    async note({ term, entry, ...batch }) {
      const state = await events.fenced("scheduleNotes.write", notes.write(batch, term));
      if (batch.complete) await membership?.catchUp(entry);
      if (batch.notes.some(({ queue }) => queue)) onReady();
      return { ...state, caughtUp: caughtUp() };
    },

    async read({ term, after }) {
      const { blank, notes: found } = await page(term, after, PAGE_NOTES);
      const [first = []] = chunks(found);
      const more = first.length < found.length || found.length === PAGE_NOTES;
      return { blank, caughtUp: caughtUp(), notes: first, next: more ? first.at(-1)!.name : null };
    },

    async digest({ term, after }) {
      const { blank, notes: found } = await page(term, after, PAGE_DIGESTS);
      const digests = found.map(({ name, version }) => ({ name, version }));
      const next = found.length === PAGE_DIGESTS ? found.at(-1)!.name : null;
      return { blank, digests, next };
    },

    async place({ term, runs }) {
      const by = { self: identity.name, takes: accepts() };
      const verdicts = await events.fenced("scheduleNotes.place", notes.place(runs, by, term));
      if (verdicts.includes("stored")) onReady();
      return { verdicts: [...verdicts] };
    },

    async forget({ term, names }) {
      await events.fenced("scheduleNotes.forget", notes.forget(names, term));
      return {};
    },

    pauses: async () => ({ ...(await notes.read("pauses")), caughtUp: caughtUp() }),
    noted: async ({ schedule, instants }) => ({
      occurrences: await store.schedules.history(schedule, instants),
    }),
    history: async ({ schedule, limit }) => ({
      occurrences: await store.schedules.history(schedule, limit),
    }),
    job: async ({ job }) => ({ status: (await store.jobs.get(job))?.status ?? null }),
  } satisfies Partial<PeerHandlers>;
}

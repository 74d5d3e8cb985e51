import type { AssignmentId, Held, OwnershipStore } from "../../../src/store/ownership.ts";
import { type BrokenStores, type Replace, unfenced } from "./broken-row.ts";

const ALONE = "a dispatch marks every due job once, in assignments of the size that was asked for";

function instead(replace: (whole: OwnershipStore) => Partial<OwnershipStore>): Replace {
  return ({ ownership }) => ({ ownership: replace(ownership!) });
}

/** As if whoever asks were who owns it now. */
async function asOwned(whole: OwnershipStore, held: Held) {
  const [now] = await whole.read([held.assignment]);
  return now?.owner ? { held: { ...held, ownerEpoch: now.ownerEpoch }, owner: now.owner } : null;
}

/** About dispatch, and who owns what was dispatched. */
export const BROKEN_OWNERSHIP: BrokenStores = {
  "dispatches for an old leader": [
    "for another leader there is no dispatch, and no mark is taken off",
    unfenced("ownership", "dispatch"),
  ],
  "disowns for an old leader": [
    "an old leader disowns nothing and finds no orphans",
    unfenced("ownership", "disown"),
  ],
  "dispatches what is dispatched already": [
    ALONE,
    instead((whole) => ({
      async dispatch(request, fence) {
        await whole.undispatch(0, fence);
        return whole.dispatch(request, fence);
      },
    })),
  ],
  "takes marks off that are young": [
    "marks that nobody accepts in time are taken off, and only those",
    instead((whole) => ({ undispatch: (_olderThanMs, fence) => whole.undispatch(0, fence) })),
  ],
  "lets everybody accept a mark": [
    "thousands of jobs are dispatched and accepted once each, whoever competes for them",
    instead((whole) => ({
      async accept(request) {
        const { held } = await whole.accept(request);
        return { held, accepted: request.runs.map(() => true) };
      },
    })),
  ],
  "accepts a job by a mark of before": [
    "a mark that is gone is not accepted",
    instead((whole) => {
      const latest = new Map<string, AssignmentId>();
      return {
        async dispatch(request, fence) {
          const answer = await whole.dispatch(request, fence);
          for (const { id, jobs } of answer.assignments) for (const job of jobs) latest.set(job.id, id);
          return answer;
        },
        accept: (request) =>
          whole.accept({
            ...request,
            runs: request.runs.map((run) => ({
              ...run,
              assignment: latest.get(run.id) ?? run.assignment,
            })),
          }),
      };
    }),
  ],
  "gives an assignment to whoever asks": [
    "of all who take an assignment over one gets the next epoch",
    instead((whole) => ({
      own: (claims, owner) =>
        Promise.all(
          claims.map(async ({ assignment }) => {
            for (;;) {
              const [now] = await whole.read([assignment]);
              if (!now) return null;
              const [epoch] = await whole.own([now], owner);
              if (epoch) return epoch;
            }
          }),
        ),
    })),
  ],
  "lets an old owner write": [
    "after a handoff the old owner writes nothing, and the new one does",
    instead((whole) => ({
      record: (events, owner) =>
        Promise.all(
          events.map(async (event) => {
            const now = await asOwned(whole, event);
            const [answer] = await whole.record([{ ...event, ...now?.held }], now?.owner ?? owner);
            return answer ?? null;
          }),
        ),
    })),
  ],
  "settles before it reports": [
    "reports are written before settlements, in one transaction",
    instead((whole) => ({
      async record(events, owner) {
        const settled = await whole.record(
          events.map((event) => ({ ...event, reports: [] })),
          owner,
        );
        const reported = await whole.record(
          events.map((event) => ({ ...event, settlements: [] })),
          owner,
        );
        return settled.map((each, at) => each && { ...each, reported: reported[at]?.reported ?? [] });
      },
    })),
  ],
  "forgets what belongs to others": [
    "what belongs to others is neither released nor forgotten",
    instead((whole) => ({
      async release(all, owner, state) {
        if (state !== "finished") return whole.release(all, owner, state);
        for (const one of all) {
          const now = await asOwned(whole, one);
          if (now) await whole.release([now.held], now.owner, state);
        }
      },
    })),
  ],
  "offers an orphan again without a pause": [
    "orphans are found at once, the unowned after a while, and each again only later",
    instead((whole) => ({
      orphans: (look, fence) => whole.orphans({ ...look, offeredBeforeMs: 0 }, fence),
    })),
  ],
};

/**
 * Ends runs in PostgreSQL, with a verdict for each run: it is refused unless the run still holds its job. A batch of
 * completed runs under one lease is one statement; any other batch is a transaction.
 */

import type { LeaseId, NodeName } from "../../../core/ids.ts";
import { afterOutcome } from "../../../core/jobs/run-end.ts";
import type { Term } from "../../../core/leadership/term.ts";
import { type Queryable, read, write } from "../../../platform/drivers/postgres/postgres.ts";
import { int4s, int8s, texts, uuids } from "../../../platform/drivers/postgres/arrays.ts";
import type { Outcome, Run, Settlement, Verdict } from "../../store.ts";
import { type Applied, applyChanges, KEPT } from "./run-endings.ts";
import { type StoreCache, NOW, uuidOf } from "./store-cache.ts";
import { fenceFrom, type PostgresTerms, termValues } from "../terms.ts";

const OWNED = ", owner, owner_epoch, assignment";

/**
 * `gone` are the completed runs, with a `result`. Returns those that were accepted, unless it is all $4 of them, and what
 * the caller adds. `before`: CTEs that come first.
 */
export const complete = (parts: {
  readonly before?: string;
  readonly gone: string;
  readonly result: string;
  readonly author?: string;
  /** The owners of `gone`: columns with these values. */
  readonly owner?: { readonly owner: string; readonly owner_epoch: string };
  readonly answer?: string;
}): string => `
  WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
  ${parts.before ?? ""}
  gone AS (
    ${parts.gone}
    RETURNING l.seq, l.id, l.kind, l.run_at, l.started_at, l.worker, l.lease, l.logs, l.progress, l.progress_message,
      l.cancel_requested, l.job_epoch, l.attempts, l.failures, l.interruptions, l.crashes, l.killed, ${parts.author ?? "l.author"}, ${parts.result} AS result${parts.owner ? `, ${parts.owner.owner} AS owner, ${parts.owner.owner_epoch} AS owner_epoch, l.assignment` : ""}
  ),
  kept AS (
    INSERT INTO baton.done (seq, id, finished_at, status, result, job_epoch, attempts, failures, interruptions, crashes, killed, author, cancel_requested, kind, ${KEPT}${parts.owner ? OWNED : ""})
    SELECT seq, id, (SELECT now FROM clock), 3, result, job_epoch, attempts, failures, interruptions, crashes, killed, author, cancel_requested, kind, ${KEPT}${parts.owner ? OWNED : ""}
    FROM gone
  ),
  counted AS (INSERT INTO baton.tally (kind, status, n) SELECT kind, 3, count(*) FROM gone GROUP BY kind)
  SELECT CASE WHEN (SELECT count(*) FROM gone) < $4::int THEN ARRAY(SELECT seq::text FROM gone) END AS accepted${parts.answer ?? ""}`;
const MINE = "l.running AND l.lease = (SELECT id FROM baton.lease WHERE name = $2)";

const COMPLETE = write(
  "settle-complete",
  complete({
    gone: `DELETE FROM baton.live l USING unnest($3::bigint[], $5::int[], $6::text[]) AS a (seq, job_epoch, result)
     WHERE l.seq = a.seq AND l.job_epoch = a.job_epoch AND ${MINE}`,
    result: "a.result",
  }),
);
/** The most common batch: first runs without a result. Comparing with an array of keys takes a third less time than a join. */
const COMPLETE_ALIKE = write(
  "settle-complete-alike",
  complete({
    gone: `DELETE FROM baton.live l WHERE l.seq = ANY ($3::bigint[]) AND l.job_epoch = $5::int AND ${MINE}`,
    result: "NULL::text",
  }),
);
/** The whole transaction, which also records the epoch under which the runs have ended. */
const COMPLETE_FENCED = write(
  "settle-complete-fenced",
  complete({
    before: `${fenceFrom(8)},`,
    gone: `DELETE FROM baton.live l USING unnest($3::bigint[], $5::int[], $6::text[], $7::int[]) AS a (seq, job_epoch, result, author)
     WHERE l.seq = a.seq AND l.job_epoch = a.job_epoch AND ${MINE} AND EXISTS (SELECT FROM fence)`,
    result: "a.result",
    author: "coalesce(a.author, l.author) AS author",
    answer: ", EXISTS (SELECT FROM fence) AS fenced",
  }),
);
const LOCK = write(
  "settle-lock",
  `SELECT l.seq, l.job_epoch, l.cancel_requested, l.cancel_reason, l.assignment, e.name AS lease
   FROM baton.live l LEFT JOIN baton.lease e ON e.id = l.lease
   WHERE l.seq = ANY ($1::bigint[]) AND l.running ORDER BY l.seq FOR UPDATE OF l`,
);
const SEQS = read("settle-seqs", "SELECT id AS uuid, seq FROM baton.job WHERE id = ANY ($1::uuid[])");
/** With the author of the run: it has the same node and owner epoch until the run has ended. */
const WRITTEN_BY = read(
  "settle-written-by",
  `SELECT j.id AS uuid, j.seq, a.node, a.owner_epoch AS "ownerEpoch"
   FROM baton.job j LEFT JOIN baton.live l ON l.seq = j.seq LEFT JOIN baton.author a ON a.id = l.author
   WHERE j.id = ANY ($1::uuid[])`,
);
const SETTLED = read(
  "settle-settled",
  `SELECT j.id AS uuid, coalesce(d.job_epoch, l.job_epoch) AS job_epoch, e.name AS lease, coalesce(l.running, false) AS running
   FROM baton.job j LEFT JOIN baton.live l ON l.seq = j.seq LEFT JOIN baton.done d ON d.seq = j.seq
   LEFT JOIN baton.lease e ON e.id = coalesce(d.lease, l.lease)
   WHERE j.id = ANY ($1::uuid[])`,
);

/** A run that goes on. */
export interface Holder {
  readonly seq: number;
  readonly job_epoch: number;
  readonly cancel_requested: boolean;
  readonly cancel_reason: string | null;
  readonly assignment: number | null;
  readonly lease: LeaseId | null;
}

interface Completed {
  /** Null for all. */
  readonly accepted: readonly string[] | null;
}

interface Settled {
  readonly uuid: string;
  readonly job_epoch: number;
  readonly lease: LeaseId | null;
  readonly running: boolean;
}

interface WrittenBy {
  readonly uuid: string;
  readonly seq: number;
  /** Null for a job that has ended. */
  readonly node: NodeName | null;
  readonly ownerEpoch: number;
}

/** A leader's term, and for each run its author under that epoch. */
export interface Fenced {
  readonly fence: Term;
  readonly authors: readonly (number | null)[];
}

export class Settle {
  readonly #cache: StoreCache;
  readonly #terms: PostgresTerms;

  constructor(cache: StoreCache, terms: PostgresTerms) {
    this.#cache = cache;
    this.#terms = terms;
  }

  async run(given: readonly Settlement[], fence?: Term): Promise<readonly Verdict[]> {
    if (given.length === 0) {
      await this.#terms.check(fence);
      return [];
    }
    const settlements = given.map(({ run, outcome }) => ({ run, outcome }));
    const runs = settlements.map(({ run }) => run);
    const { seqs, fenced } = await this.known(runs, fence);
    const { lease } = runs[0]!;
    const completed = settlements.every(
      ({ run, outcome }) => outcome.kind === "completed" && run.lease === lease,
    );
    const verdicts = completed
      ? await this.#complete(settlements, seqs, lease, fenced)
      : await this.#cache.db.transaction(async (tx) => {
          if (fence) await this.#terms.hold(tx, fence);
          return this.within(tx, settlements, seqs, underItsLease, { fenced });
        });
    return this.withRefusals(runs, verdicts);
  }

  /** The numbers of the runs' jobs, and the values that a write under this term records. */
  async known(
    runs: readonly Run[],
    fence: Term | undefined,
  ): Promise<{ readonly seqs: readonly (number | null)[]; readonly fenced?: Fenced }> {
    if (!fence) return { seqs: await this.seqs(runs) };
    const cache = this.#cache;
    const rows = await cache.db.query<WrittenBy>(WRITTEN_BY, [uuids(runs.map((run) => uuidOf(run.id)))]);
    const found = new Map<string, { readonly seq: number; readonly author: number | null }>();
    for (const { uuid, seq, node, ownerEpoch } of rows) {
      const author = node && (await cache.authorId({ node, ownerEpoch, leaderEpoch: fence.epoch }));
      found.set(uuid, { seq, author });
    }
    const jobs = runs.map((run) => found.get(uuidOf(run.id)));
    return {
      seqs: jobs.map((job) => job?.seq ?? null),
      fenced: { fence, authors: jobs.map((job) => job?.author ?? null) },
    };
  }

  /** The number of each run's job: its `ref`, or looked up. Null if there is no such job. */
  async seqs(runs: readonly Pick<Run, "id" | "ref">[]): Promise<(number | null)[]> {
    const foreign = runs.filter((run) => run.ref === undefined || run.ref === null);
    if (foreign.length === 0) return runs.map((run) => run.ref as number);
    const rows = await this.#cache.db.query<{ uuid: string; seq: number }>(SEQS, [
      uuids(foreign.map((run) => uuidOf(run.id))),
    ]);
    const found = new Map(rows.map((row) => [row.uuid, row.seq]));
    return runs.map((run) => (run.ref as number | null) ?? found.get(uuidOf(run.id)) ?? null);
  }

  /** Why runs were not accepted: one with an equal epoch that no longer runs was settled before. */
  async withRefusals(
    runs: readonly Run[],
    verdicts: readonly (Verdict | null)[],
  ): Promise<readonly Verdict[]> {
    if (verdicts.every((verdict) => verdict !== null)) return verdicts;
    const refused = runs.filter((_, at) => verdicts[at] === null);
    const rows = await this.#cache.db.query<Settled>(SETTLED, [uuids(refused.map((run) => uuidOf(run.id)))]);
    const found = new Map(rows.map((row) => [row.uuid, row]));
    return verdicts.map((verdict, at) => verdict ?? refusal(runs[at]!, found.get(uuidOf(runs[at]!.id))));
  }

  async #complete(
    settlements: readonly Settlement[],
    seqs: readonly (number | null)[],
    lease: LeaseId,
    fenced: Fenced | undefined,
  ): Promise<(Verdict | null)[]> {
    const results = settlements.map(({ outcome }) => resultOf(outcome));
    const { jobEpoch } = settlements[0]!.run;
    const alike = settlements.every(({ run }, at) => run.jobEpoch === jobEpoch && results[at] === null);
    const common = [this.#cache.now(), lease, int8s(seqs), settlements.length];
    const each = () => [...common, int4s(settlements.map(({ run }) => run.jobEpoch)), texts(results)];
    const { db } = this.#cache;
    if (fenced) {
      const values = [...each(), int4s(fenced.authors), ...termValues(fenced.fence)];
      const [row] = await db.query<Completed & { fenced: boolean }>(COMPLETE_FENCED, values);
      if (!row!.fenced) throw await this.#terms.refusal(fenced.fence);
      return completedVerdicts(seqs, row!.accepted);
    }
    const [row] = alike
      ? await db.query<Completed>(COMPLETE_ALIKE, [...common, jobEpoch])
      : await db.query<Completed>(COMPLETE, each());
    return completedVerdicts(seqs, row!.accepted);
  }

  /** In a transaction of the caller, which also decides whether a running row is the run of a settlement. */
  async within<T extends Settlement>(
    tx: Queryable,
    settlements: readonly T[],
    seqs: readonly (number | null)[],
    isMeant: (holder: Holder, settlement: T) => boolean,
    {
      fenced,
      ownerOf,
    }: { readonly fenced?: Fenced; readonly ownerOf?: (settlement: T) => Applied["owner"] } = {},
  ): Promise<(Verdict | null)[]> {
    const rows = await tx.query<Holder>(LOCK, [int8s(seqs.filter((seq) => seq !== null))]);
    const holders = new Map(rows.map((row) => [row.seq, row]));
    const changes: Applied[] = [];
    const verdicts = settlements.map((settlement, at): Verdict | null => {
      const { run, outcome } = settlement;
      const holder = seqs[at] === null ? undefined : holders.get(seqs[at]!);
      if (!holder || holder.job_epoch !== run.jobEpoch || !isMeant(holder, settlement)) return null;
      holders.delete(holder.seq);
      const cancel = holder.cancel_requested ? { reason: holder.cancel_reason } : null;
      changes.push({
        seq: holder.seq,
        change: afterOutcome(outcome, cancel),
        result: resultOf(outcome),
        taken: false,
        author: fenced?.authors[at] ?? null,
        owner: ownerOf?.(settlement) ?? null,
      });
      return "accepted";
    });
    await applyChanges(tx, changes, this.#cache.now());
    return verdicts;
  }
}

export function underItsLease(holder: Holder, { run }: Settlement): boolean {
  return holder.lease === run.lease;
}

/** Null for refused runs. */
export function completedVerdicts(
  seqs: readonly (number | null)[],
  accepted: readonly string[] | null,
): (Verdict | null)[] {
  if (accepted === null) return seqs.map(() => "accepted");
  const gone = new Set(accepted.map(Number));
  // Deleted from the set: a second verdict on the same run in one batch is a repetition.
  return seqs.map((seq) => (seq !== null && gone.delete(seq) ? "accepted" : null));
}

function refusal(run: Run, row: Settled | undefined): Verdict {
  if (!row) return "missing";
  const over = !row.running && run.jobEpoch > 0 && row.job_epoch === run.jobEpoch;
  // A lease that is no longer stored cannot be compared; the epoch alone identifies the run.
  return over && (row.lease === null || row.lease === run.lease) ? "replayed" : "stale";
}

export function resultOf(outcome: Outcome): string | null {
  return outcome.kind === "completed" && outcome.result !== "null" ? outcome.result : null;
}

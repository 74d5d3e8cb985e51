/**
 * Ends runs in PostgreSQL, with a verdict for each run: it is refused unless the run still holds its job. A batch of
 * completed runs under one lease is one statement (complete.ts); any other batch is a transaction.
 */

import type { LeaseId, NodeName } from "../../../core/ids.ts";
import { afterOutcome } from "../../../core/jobs/run-end.ts";
import type { Term } from "../../../core/leadership/term.ts";
import { type Queryable, read, write } from "../../../platform/drivers/postgres/postgres.ts";
import { int4s, int8s, texts, uuids } from "../../../platform/drivers/postgres/arrays.ts";
import type { Run, Settlement, Verdict } from "../../store.ts";
import {
  type Batch,
  COMPLETE,
  COMPLETE_ALIKE,
  COMPLETE_PIECES,
  COMPLETE_PIECES_FENCED,
  completedPieces,
  pieceValues,
  resultOf,
} from "./complete.ts";
import { covering, type Ref, seqOf, STATE_OF_JOB, takeApart } from "./ranges.ts";
import { type Applied, applyChanges } from "./run-endings.ts";
import { type StoreCache, uuidOf } from "./store-cache.ts";
import type { PostgresScripts } from "../scripts.ts";
import { termValues } from "../terms.ts";

const LOCK = write(
  "settle-lock",
  `SELECT l.seq, l.job_epoch, l.cancel_requested, l.cancel_reason, l.assignment, e.name AS lease
   FROM baton.live l LEFT JOIN baton.lease e ON e.id = l.lease
   WHERE l.seq = ANY ($1::bigint[]) AND l.n = 1 AND l.started_at IS NOT NULL ORDER BY l.seq FOR UPDATE OF l`,
);
const SEQS = read("settle-seqs", "SELECT id AS uuid, seq FROM baton.job WHERE id = ANY ($1::uuid[])");
/** With the author of the run: it has the same node and owner epoch until the run has ended. */
const WRITTEN_BY = read(
  "settle-written-by",
  `SELECT j.id AS uuid, j.seq, a.node, a.owner_epoch AS "ownerEpoch"
   FROM baton.job j LEFT JOIN LATERAL (${covering("live", "j.seq")}) AS l ON true LEFT JOIN baton.author a ON a.id = l.author
   WHERE j.id = ANY ($1::uuid[])`,
);
const SETTLED = read(
  "settle-settled",
  `SELECT j.id AS uuid, coalesce(d.job_epoch, l.job_epoch) AS job_epoch, e.name AS lease, l.started_at IS NOT NULL AS running
   FROM baton.job j ${STATE_OF_JOB}
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

interface CompletedFenced extends Completed {
  readonly fenced: boolean;
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

export class Settle {
  readonly #cache: StoreCache;
  readonly #scripts: PostgresScripts;

  constructor(cache: StoreCache, scripts: PostgresScripts) {
    this.#cache = cache;
    this.#scripts = scripts;
  }

  async run(given: readonly Settlement[], fence?: Term): Promise<readonly Verdict[]> {
    if (given.length === 0) {
      await this.#scripts.check(fence);
      return [];
    }
    const runs = given.map(({ run }) => run);
    const batch = { settlements: given, ...(await this.known(runs, fence)) };
    const verdicts = await settleOpen(batch, await this.#inOneStatement(batch), (rest) =>
      this.#scripts.transaction((tx) => this.underLeases(tx, rest), fence),
    );
    return this.withRefusals(runs, verdicts);
  }

  /** The numbers of the runs' jobs, and the values that a write under this term records. */
  async known(runs: readonly Run[], fence: Term | undefined): Promise<Omit<Batch, "settlements">> {
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
    if (foreign.length === 0) return runs.map(({ ref }) => seqOf(ref as Ref));
    const rows = await this.#cache.db.query<{ uuid: string; seq: number }>(SEQS, [
      uuids(foreign.map((run) => uuidOf(run.id))),
    ]);
    const found = new Map(rows.map((row) => [row.uuid, row.seq]));
    return runs.map(({ id, ref }) => (ref ? seqOf(ref as Ref) : (found.get(uuidOf(id)) ?? null)));
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

  /** What one statement can settle. Everything else is open: a transaction decides. */
  async #inOneStatement(batch: Batch): Promise<(Verdict | "open" | null)[]> {
    const { settlements, seqs, fenced } = batch;
    const { lease, jobEpoch } = settlements[0]!.run;
    if (!settlements.every(({ run, outcome }) => outcome.kind === "completed" && run.lease === lease))
      return settlements.map(() => "open");
    if (fenced || settlements.some(({ run }) => typeof run.ref !== "number"))
      return this.#pieces(this.#cache.db, batch);
    const results = settlements.map(({ outcome }) => resultOf(outcome));
    const alike = settlements.every(({ run }, at) => run.jobEpoch === jobEpoch && results[at] === null);
    const common = [this.#cache.now(), lease, int8s(seqs), settlements.length];
    const { db } = this.#cache;
    const [row] = alike
      ? await db.query<Completed>(COMPLETE_ALIKE, [...common, jobEpoch])
      : await db.query<Completed>(COMPLETE, [
          ...common,
          int4s(settlements.map(({ run }) => run.jobEpoch)),
          texts(results),
        ]);
    return completedVerdicts(seqs, row!.accepted);
  }

  /** Completed runs under one lease, cut out of their rows. Those in a range that was cut meanwhile are open. */
  async #pieces(db: Queryable, batch: Batch): Promise<(Verdict | "open")[]> {
    const { settlements, fenced } = batch;
    const cut = completedPieces(batch);
    const values = [this.#cache.now(), settlements[0]!.run.lease, ...pieceValues(cut, batch)];
    const [row] = fenced
      ? await db.query<CompletedFenced>(COMPLETE_PIECES_FENCED, [...values, ...termValues(fenced.fence)])
      : await db.query<Completed>(COMPLETE_PIECES, values);
    if (fenced && !(row as CompletedFenced).fenced) throw await this.#scripts.refusal(fenced.fence);
    const accepted = row!.accepted && new Set(row!.accepted.map(Number));
    const { order, pieces } = cut;
    if (accepted === null && order === null) return settlements.map(() => "accepted");
    const verdicts: (Verdict | "open")[] = settlements.map(() => "open");
    for (const { seq, from, n } of pieces) {
      if (accepted?.has(seq) === false) continue;
      for (let index = from; index < from + n; index++) verdicts[order ? order[index]! : index] = "accepted";
    }
    return verdicts;
  }

  /** In a transaction of the caller. What has completed is cut out of its range first, so that less of it is taken apart. */
  async underLeases(tx: Queryable, batch: Batch): Promise<(Verdict | null)[]> {
    const { settlements, seqs } = batch;
    const others = new Set(seqs.filter((_, at) => settlements[at]!.outcome.kind !== "completed"));
    const inRange = [...settlements.keys()].filter(
      (at) => typeof settlements[at]!.run.ref === "object" && !others.has(seqs[at]!),
    );
    const verdicts: (Verdict | "open" | null)[] = settlements.map(() => "open");
    if (inRange.length > 0) {
      const cut = await this.#pieces(tx, partOf(batch, inRange));
      for (const [n, at] of inRange.entries()) verdicts[at] = cut[n]!;
    }
    return settleOpen(batch, verdicts, (rest) =>
      this.within(tx, rest, (holder, { run }) => holder.lease === run.lease),
    );
  }

  /** In a transaction of the caller, which also decides whether a running row is the run of a settlement. */
  async within<One extends Settlement>(
    tx: Queryable,
    { settlements, seqs, fenced }: Batch<One>,
    isMeant: (holder: Holder, settlement: One) => boolean,
    ownerOf?: (settlement: One) => Applied["owner"],
  ): Promise<(Verdict | null)[]> {
    await takeApart(tx, inRanges(settlements, seqs));
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

/** The numbers of runs whose job may be in a range. */
export function inRanges(
  all: readonly { readonly run: Run }[],
  seqs: readonly (number | null)[],
): readonly number[] {
  return seqs.filter((seq, at): seq is number => seq !== null && typeof all[at]!.run.ref !== "number");
}

/** Settles what is open in another way. */
async function settleOpen(
  batch: Batch,
  verdicts: (Verdict | "open" | null)[],
  settle: (rest: Batch) => Promise<(Verdict | null)[]>,
): Promise<(Verdict | null)[]> {
  const open = [...verdicts.keys()].filter((at) => verdicts[at] === "open");
  const left = open.length === 0 ? [] : await settle(partOf(batch, open));
  for (const [n, at] of open.entries()) verdicts[at] = left[n]!;
  return verdicts as (Verdict | null)[];
}

function partOf({ settlements, seqs, fenced }: Batch, places: readonly number[]): Batch {
  const pick = <T>(all: readonly T[]): T[] => places.map((at) => all[at]!);
  return {
    settlements: pick(settlements),
    seqs: pick(seqs),
    fenced: fenced && { fence: fenced.fence, authors: pick(fenced.authors) },
  };
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

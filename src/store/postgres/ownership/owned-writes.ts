/** The writes of an owner about the runs of its assignments. They are refused once another node owns the assignment. */

import type { NodeIdentity } from "../../../core/node.ts";
import { type Queryable, write } from "../../../platform/drivers/postgres/postgres.ts";
import { int4s, int8s, texts } from "../../../platform/drivers/postgres/arrays.ts";
import type { Held, OwnershipStore } from "../../ownership.ts";
import type { Report as RunReport, Run, Settlement, Verdict } from "../../store.ts";
import type { StoreCache } from "../jobs/store-cache.ts";
import { heldColumns } from "./assignments.ts";
import type { Report } from "../jobs/report.ts";
import { complete, resultOf } from "../jobs/complete.ts";
import { completedVerdicts, type Settle } from "../jobs/settle.ts";

/**
 * The positions of assignments that the caller owns under these epochs. The lock lets the next owner wait until this
 * transaction has ended, and shows it an owner that came first.
 */
const held = (owner: string, ids: string, epochs: string): string => `
  SELECT h.place FROM unnest(${ids}::bigint[], ${epochs}::int[]) WITH ORDINALITY AS h (id, owner_epoch, place)
  JOIN baton.assignment s ON s.id = h.id AND s.owner_epoch = h.owner_epoch
  WHERE s.owner = ${owner} ORDER BY s.id FOR SHARE OF s`;
const HOLD = write("owned-hold", held("$1", "$2", "$3"));

/** The whole transaction for the most common batch: completed runs without reports. */
const COMPLETE = write(
  "owned-complete",
  complete({
    before: `held AS MATERIALIZED (${held("$2", "$5", "$6")}),`,
    // IS TRUE keeps the planner from a join of each with each.
    gone: `DELETE FROM baton.live l
      USING unnest($3::bigint[], $7::int[], $8::bigint[], $9::text[], $10::int[], $12::int[])
        AS a (seq, job_epoch, assignment, result, place, owner_epoch)
      WHERE l.seq = a.seq AND l.job_epoch = a.job_epoch AND l.assignment = a.assignment AND l.started_at IS NOT NULL
        AND (a.place IN (SELECT place FROM held)) IS TRUE`,
    result: "a.result",
    owner: { owner: "$11::int", owner_epoch: "a.owner_epoch" },
    answer: `,
      CASE WHEN (SELECT count(*) FROM held) < cardinality($5::bigint[]) THEN ARRAY(SELECT place::text FROM held) END AS held`,
  }),
);

interface Completed {
  /** Null for all, as `held`. */
  readonly accepted: readonly string[] | null;
  readonly held: readonly string[] | null;
}

/** The position of the assignment in the list, from 1. */
interface Said extends Held {
  readonly place: number;
}

interface Batch {
  readonly owner: NodeIdentity;
  /** The number of its name. */
  readonly ownerName: number;
  /** In the order of ids, so that two calls cannot deadlock. */
  readonly claims: readonly Held[];
  /** Of all assignments, one after the other. */
  readonly reports: readonly (RunReport & Said)[];
  readonly reportSeqs: readonly (number | null)[];
  readonly settlements: readonly (Settlement & Said)[];
  readonly settlementSeqs: readonly (number | null)[];
}

interface Written {
  readonly ours: (place: number) => boolean;
  /** Null for refused runs. */
  readonly reported: readonly (Verdict | null)[];
  readonly settled: readonly (Verdict | null)[];
}

export function ownedWrites(cache: StoreCache, settle: Settle, report: Report): OwnershipStore["record"] {
  const completeAll = async (batch: Batch): Promise<Written> => {
    const { owner, ownerName, claims, settlements, settlementSeqs } = batch;
    const [row] = await cache.db.query<Completed>(COMPLETE, [
      cache.now(),
      owner.incarnation,
      int8s(settlementSeqs),
      settlements.length,
      ...heldColumns(claims),
      int4s(settlements.map(({ run }) => run.jobEpoch)),
      int8s(settlements.map(({ assignment }) => assignment)),
      texts(settlements.map(({ outcome }) => resultOf(outcome))),
      int4s(settlements.map(({ place }) => place)),
      ownerName,
      int4s(settlements.map(({ ownerEpoch }) => ownerEpoch)),
    ]);
    const { accepted, held } = row!;
    const places = held && new Set(held.map(Number));
    return {
      ours: (place) => places?.has(place) ?? true,
      reported: [],
      settled: completedVerdicts(settlementSeqs, accepted),
    };
  };

  const writeAll = async (tx: Queryable, batch: Batch): Promise<Written> => {
    const { owner, ownerName, claims, reports, settlements } = batch;
    const rows = await tx.query<{ place: number }>(HOLD, [owner.incarnation, ...heldColumns(claims)]);
    const places = new Set(rows.map(({ place }) => place));
    const ours = (place: number): boolean => places.has(place);
    const mine = (all: readonly Said[], seqs: readonly (number | null)[]) =>
      seqs.map((seq, at) => (ours(all[at]!.place) ? seq : null));
    const assignments = reports.map(({ assignment }) => assignment);
    const reported = await report.write(tx, reports, mine(reports, batch.reportSeqs), { assignments });
    const settled = await settle.within(
      tx,
      { settlements, seqs: mine(settlements, batch.settlementSeqs) },
      (holder, { assignment }) => holder.assignment === assignment,
      ({ ownerEpoch }) => ({ name: ownerName, epoch: ownerEpoch }),
    );
    return { ours, reported, settled };
  };

  return async (events, owner) => {
    if (events.length === 0) return [];
    const distinct = new Map(events.map((event): [string, Held] => [keyOf(event), event]));
    const claims = [...distinct.values()].sort((a, b) => a.assignment - b.assignment);
    const placeOf = new Map(claims.map((claim, at) => [keyOf(claim), at + 1]));
    const said = events.map((event): Said => {
      const { assignment, ownerEpoch } = event;
      return { assignment, ownerEpoch, place: placeOf.get(keyOf(event))! };
    });
    const reports = events.flatMap((event, at) => event.reports.map((each) => ({ ...each, ...said[at]! })));
    const settlements = events.flatMap((event, at) =>
      event.settlements.map((each) => ({ ...each, ...said[at]! })),
    );
    const seqs = await settle.seqs([...reports, ...settlements].map(({ run }) => run));
    const batch: Batch = {
      owner,
      ownerName: await cache.nameId(owner.name),
      claims,
      reports,
      reportSeqs: seqs.slice(0, reports.length),
      settlements,
      settlementSeqs: seqs.slice(reports.length),
    };
    const plain = reports.length === 0 && settlements.every(({ outcome }) => outcome.kind === "completed");
    const written = plain
      ? await completeAll(batch)
      : await cache.db.transaction((tx) => writeAll(tx, batch));
    const { ours } = written;
    // Runs of assignments that the caller does not own get no verdict and are not read.
    const asked = (all: readonly Said[], verdicts: readonly (Verdict | null)[]) =>
      verdicts.map((verdict, at) => (ours(all[at]!.place) ? verdict : "stale"));
    const reported = await report.withRefusals(runs(reports), asked(reports, written.reported));
    const settled = await settle.withRefusals(runs(settlements), asked(settlements, written.settled));
    let reportAt = 0;
    let settlementAt = 0;
    return events.map((event, at) => {
      const verdicts = {
        reported: reported.slice(reportAt, (reportAt += event.reports.length)),
        settled: settled.slice(settlementAt, (settlementAt += event.settlements.length)),
      };
      return ours(said[at]!.place) ? verdicts : null;
    });
  };
}

function keyOf({ assignment, ownerEpoch }: Held): string {
  return `${assignment} ${ownerEpoch}`;
}

function runs(all: readonly { readonly run: Run }[]): Run[] {
  return all.map(({ run }) => run);
}

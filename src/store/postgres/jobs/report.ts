/**
 * Writes the logs and the progress of runs into PostgreSQL, one statement for a batch. The write is refused unless the
 * run still holds its job.
 */

import type { Term } from "../../../core/leadership/term.ts";
import { type Queryable, write } from "../../../platform/drivers/postgres/postgres.ts";
import { float8s, int4s, int8s, texts } from "../../../platform/drivers/postgres/arrays.ts";
import type { AssignmentId } from "../../ownership.ts";
import { LOG_LIMIT_REACHED, LOG_LINES_MAX } from "../../store.ts";
import type { NewLogLine, Recorded, Report as RunReport, Run, RunBatch, Verdict } from "../../store.ts";
import { type StoreCache, NOW, withoutNul } from "./store-cache.ts";
import { takeApart } from "./ranges.ts";
import type { Fenced } from "./complete.ts";
import { inRanges, type Settle } from "./settle.ts";
import type { PostgresScripts } from "../scripts.ts";

/** $4: the lease or the assignment that holds each run. */
const report = (holder: "lease" | "assignment"): string =>
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
   held AS MATERIALIZED (
     SELECT l.seq, l.logs, a.job_epoch, a.lines, a.progress, a.message, a.author, a.place
     FROM unnest($2::bigint[], $3::int[], $4::${holder === "lease" ? "text" : "bigint"}[], $5::int[], $6::float8[], $7::text[], $8::int[])
       WITH ORDINALITY AS a (seq, job_epoch, holder, lines, progress, message, author, place)
     ${holder === "lease" ? "JOIN baton.lease e ON e.name = a.holder" : ""}
     JOIN baton.live l ON l.seq = a.seq AND l.n = 1 AND l.started_at IS NOT NULL AND l.job_epoch = a.job_epoch
       AND ${holder === "lease" ? "l.lease = e.id" : "l.assignment = a.holder"}
     ORDER BY l.seq FOR UPDATE OF l
   ),
   touched AS (
     UPDATE baton.live l SET updated_at = (SELECT now FROM clock), logs = least(l.logs + held.lines, ${LOG_LINES_MAX}),
       progress = coalesce(held.progress, l.progress),
       progress_message = CASE WHEN held.progress IS NULL THEN l.progress_message ELSE held.message END,
       author = coalesce(held.author, l.author)
     FROM held WHERE l.seq = held.seq
   ),
   written AS (
     INSERT INTO baton.log (seq, n, job_epoch, at, level, message)
     SELECT held.seq, held.logs + g.n, held.job_epoch, g.at,
       CASE WHEN held.logs + g.n = ${LOG_LINES_MAX} THEN 'warn' ELSE g.level END,
       CASE WHEN held.logs + g.n = ${LOG_LINES_MAX} THEN '${LOG_LIMIT_REACHED}' ELSE g.message END
     FROM unnest($9::bigint[], $10::int[], $11::bigint[], $12::text[], $13::text[]) AS g (place, n, at, level, message)
     JOIN held ON held.place = g.place WHERE held.logs + g.n <= ${LOG_LINES_MAX}
   )
   SELECT place FROM held`;
const REPORT = write("report", report("lease"));
const REPORT_OWNED = write("report-owned", report("assignment"));

/** Everything in a batch about one run. */
interface Sum {
  /** In the batch. */
  readonly places: readonly number[];
  readonly run: Run;
  readonly seq: number;
  readonly assignment: AssignmentId | null;
  readonly author: number | null;
  readonly lines: readonly NewLogLine[];
  readonly progress: RunReport["progress"];
}

/** A run is identified by its assignment, or else by its lease. */
interface WrittenUnder {
  readonly assignments?: readonly AssignmentId[];
  readonly fenced?: Pick<Fenced, "authors"> | undefined;
}

export class Report {
  readonly #cache: StoreCache;
  readonly #settle: Settle;
  readonly #scripts: PostgresScripts;

  constructor(cache: StoreCache, settle: Settle, scripts: PostgresScripts) {
    this.#cache = cache;
    this.#settle = settle;
    this.#scripts = scripts;
  }

  /** One statement if that is enough, which is nearly always; otherwise one transaction. */
  async record({ reports, settlements }: RunBatch, fence?: Term): Promise<Recorded> {
    if (reports.length === 0) return { reported: [], settled: await this.#settle.run(settlements, fence) };
    const reporting = reports.map(({ run }) => run);
    const ending = settlements.map(({ run }) => run);
    const said = await this.#settle.known(reporting, fence);
    const ended = await this.#settle.known(ending, fence);
    const writeAll = async (tx: Queryable) => ({
      reported: await this.write(tx, reports, said.seqs, said),
      settled: await this.#settle.underLeases(tx, { settlements, ...ended }),
    });
    const { reported, settled } =
      ending.length === 0 && !fence
        ? await writeAll(this.#cache.db)
        : await this.#scripts.transaction(writeAll, fence);
    return {
      reported: await this.withRefusals(reporting, reported),
      settled: await this.#settle.withRefusals(ending, settled),
    };
  }

  /** A run that has ended cannot write: "replayed" is for results only. */
  async withRefusals(
    runs: readonly Run[],
    verdicts: readonly (Verdict | null)[],
  ): Promise<readonly Verdict[]> {
    const final = await this.#settle.withRefusals(runs, verdicts);
    return final.map((verdict) => (verdict === "replayed" ? "stale" : verdict));
  }

  /** Null for refused runs. */
  async write(
    db: Queryable,
    reports: readonly RunReport[],
    seqs: readonly (number | null)[],
    { assignments, fenced }: WrittenUnder,
  ): Promise<(Verdict | null)[]> {
    await takeApart(db, inRanges(reports, seqs));
    const groups = Map.groupBy(reports.keys(), (at) => {
      const { jobEpoch, lease } = reports[at]!.run;
      return `${seqs[at]} ${jobEpoch} ${assignments ? assignments[at] : lease}`;
    });
    const sums = [...groups.values()].flatMap((places): Sum[] => {
      const [first] = places as [number];
      const seq = seqs[first]!;
      const all = places.map((at) => reports[at]!);
      const lines = all.flatMap(({ logs }) => logs);
      const progress = all.findLast((one) => one.progress !== null)?.progress ?? null;
      const assignment = assignments?.[first] ?? null;
      const author = fenced?.authors[first] ?? null;
      return seq === null ? [] : [{ places, run: all[0]!.run, seq, assignment, author, lines, progress }];
    });
    const verdicts: (Verdict | null)[] = reports.map(() => null);
    if (sums.length === 0) return verdicts;
    for (const { places } of await this.#write(db, sums, assignments !== undefined)) {
      for (const at of places) verdicts[at] = "accepted";
    }
    return verdicts;
  }

  async #write(db: Queryable, sums: readonly Sum[], owned: boolean): Promise<Sum[]> {
    const lines = sums.flatMap((sum, at) =>
      sum.lines.map((line, index) => ({ ...line, place: at + 1, n: index + 1 })),
    );
    const rows = await db.query<{ place: number }>(owned ? REPORT_OWNED : REPORT, [
      this.#cache.now(),
      int8s(sums.map((sum) => sum.seq)),
      int4s(sums.map((sum) => sum.run.jobEpoch)),
      owned ? int8s(sums.map((sum) => sum.assignment)) : texts(sums.map((sum) => sum.run.lease)),
      int4s(sums.map((sum) => sum.lines.length)),
      float8s(sums.map((sum) => sum.progress?.value ?? null)),
      texts(sums.map((sum) => sum.progress?.message ?? null).map((text) => text && withoutNul(text))),
      int4s(sums.map((sum) => sum.author)),
      int8s(lines.map((line) => line.place)),
      int4s(lines.map((line) => line.n)),
      int8s(lines.map((line) => line.at)),
      texts(lines.map((line) => line.level)),
      texts(lines.map((line) => withoutNul(line.message))),
    ]);
    return rows.map((row) => sums[row.place - 1]!);
  }
}

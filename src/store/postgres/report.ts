import { write } from "../../platform/drivers/postgres.ts";
import { float8s, int4s, int8s, texts } from "../../platform/drivers/postgres-arrays.ts";
import { LOG_LINES_MAX } from "../store.ts";
import type { NewLogLine, Report as RunReport, Run, Verdict } from "../store.ts";
import { type Ledger, NOW, withoutNul } from "./ledger.ts";
import type { Settle } from "./settle.ts";

const LIMIT_REACHED = `the limit of ${LOG_LINES_MAX} log lines is reached; later lines are dropped`;

const REPORT = write(
  "report",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
   held AS MATERIALIZED (
     SELECT l.seq, l.logs, a.job_epoch, a.lines, a.progress, a.message, a.place
     FROM unnest($2::bigint[], $3::int[], $4::text[], $5::int[], $6::float8[], $7::text[])
       WITH ORDINALITY AS a (seq, job_epoch, lease, lines, progress, message, place)
     JOIN baton.lease e ON e.name = a.lease
     JOIN baton.live l ON l.seq = a.seq AND l.running AND l.job_epoch = a.job_epoch AND l.lease = e.id
     ORDER BY l.seq FOR UPDATE OF l
   ),
   touched AS (
     UPDATE baton.live l SET updated_at = (SELECT now FROM clock), logs = least(l.logs + held.lines, ${LOG_LINES_MAX}),
       progress = coalesce(held.progress, l.progress),
       progress_message = CASE WHEN held.progress IS NULL THEN l.progress_message ELSE held.message END
     FROM held WHERE l.seq = held.seq
   ),
   written AS (
     INSERT INTO baton.log (seq, n, job_epoch, at, level, message)
     SELECT held.seq, held.logs + g.n, held.job_epoch, g.at,
       CASE WHEN held.logs + g.n = ${LOG_LINES_MAX} THEN 'warn' ELSE g.level END,
       CASE WHEN held.logs + g.n = ${LOG_LINES_MAX} THEN '${LIMIT_REACHED}' ELSE g.message END
     FROM unnest($8::bigint[], $9::int[], $10::bigint[], $11::text[], $12::text[]) AS g (place, n, at, level, message)
     JOIN held ON held.place = g.place WHERE held.logs + g.n <= ${LOG_LINES_MAX}
   )
   SELECT place FROM held`,
);

/** All that a batch says about one run. */
interface Sum {
  readonly run: Run;
  readonly seq: number;
  readonly lines: NewLogLine[];
  progress: RunReport["progress"];
}

/** Logs and progress of runs, in one statement for a batch. */
export class Report {
  readonly #ledger: Ledger;
  readonly #settle: Settle;

  constructor(ledger: Ledger, settle: Settle) {
    this.#ledger = ledger;
    this.#settle = settle;
  }

  async run(reports: readonly RunReport[]): Promise<readonly Verdict[]> {
    if (reports.length === 0) return [];
    const runs = reports.map(({ run }) => run);
    const seqs = await this.#settle.seqs(runs);
    const keys = runs.map((run, at) => `${seqs[at]} ${run.jobEpoch} ${run.lease}`);
    const sums = new Map<string, Sum>();
    for (const [at, { run, logs, progress }] of reports.entries()) {
      if (seqs[at] === null) continue;
      let sum = sums.get(keys[at]!);
      if (!sum) sums.set(keys[at]!, (sum = { run, seq: seqs[at]!, lines: [], progress: null }));
      sum.lines.push(...logs);
      sum.progress = progress ?? sum.progress;
    }
    const held = await this.#write([...sums.values()]);
    const verdicts = keys.map((key): Verdict | null => {
      const sum = sums.get(key);
      return sum && held.has(sum) ? "accepted" : null;
    });
    // A run that has ended writes no more: "replayed" is for results only.
    const final = await this.#settle.withRefusals(runs, verdicts);
    return final.map((verdict) => (verdict === "replayed" ? "stale" : verdict));
  }

  async #write(sums: readonly Sum[]): Promise<Set<Sum>> {
    const lines = sums.flatMap((sum, at) =>
      sum.lines.map((line, index) => ({ ...line, place: at + 1, n: index + 1 })),
    );
    const rows = await this.#ledger.db.query<{ place: number }>(REPORT, [
      this.#ledger.now(),
      int8s(sums.map((sum) => sum.seq)),
      int4s(sums.map((sum) => sum.run.jobEpoch)),
      texts(sums.map((sum) => sum.run.lease)),
      int4s(sums.map((sum) => sum.lines.length)),
      float8s(sums.map((sum) => sum.progress?.value ?? null)),
      texts(sums.map((sum) => sum.progress?.message ?? null).map((text) => text && withoutNul(text))),
      int8s(lines.map((line) => line.place)),
      int4s(lines.map((line) => line.n)),
      int8s(lines.map((line) => line.at)),
      texts(lines.map((line) => line.level)),
      texts(lines.map((line) => withoutNul(line.message))),
    ]);
    return new Set(rows.map((row) => sums[row.place - 1]!));
  }
}

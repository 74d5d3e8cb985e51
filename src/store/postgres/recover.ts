import type { JobId, LeaseId } from "../../core/ids.ts";
import { crashError, isSuspect, type Budgets, type JobError } from "../../core/job.ts";
import type { Term } from "../../core/term.ts";
import { type Queryable, read, write } from "../../platform/drivers/postgres.ts";
import { int4s } from "../../platform/drivers/postgres-arrays.ts";
import type { Abandoned, Author, Recovered, Renewal } from "../store.ts";
import { type Ending, endRuns, NOTHING, type Return, returnRuns } from "./endings.ts";
import { type Ledger, NOW } from "./ledger.ts";
import { STATUS } from "./schema.ts";
import type { PostgresTerms } from "./terms.ts";

const RENEW = write(
  "lease-renew",
  `UPDATE baton.lease SET expires_at = ${NOW} + $3::bigint WHERE name = $2 AND expires_at > ${NOW} RETURNING id`,
);
const UNWANTED = read(
  "lease-unwanted",
  `SELECT b.name || '-' || j.id AS id, l.job_epoch AS "jobEpoch", l.cancel_reason AS reason
   FROM baton.live l JOIN baton.job j ON j.id = l.id JOIN baton.name b ON b.id = j.birthplace
   WHERE l.cancel_requested AND l.running AND l.lease = $1 ORDER BY l.seq`,
);

/** Waits for claims that hold the lease at this moment (FOR KEY SHARE), and spares one that they have prolonged. */
const END_EXPIRED = write(
  "lease-end-expired",
  `DELETE FROM baton.lease WHERE expires_at <= ${NOW} RETURNING id`,
);
/** A lease is named `<node>/<incarnation>`, with more behind another slash for a claimant that has several. */
const END_OF_NODE = write(
  "lease-end-of-node",
  `DELETE FROM baton.lease
   WHERE ($1::text IS NULL OR split_part(name, '/', 1) = $1)
     AND ($2::text IS NULL OR split_part(name, '/', 2) <> $2) RETURNING id`,
);
/** The one walk through the hot table: an index on the lease would slow down every claim instead. */
const MAY_SCAN = write("recover-may-scan", "SET LOCAL enable_seqscan = on");
const LOST = write(
  "recover-lost",
  `SELECT l.seq, b.name || '-' || j.id AS id, w.name AS worker, a.node, a.owner_epoch, l.killed, l.failures,
     l.interruptions, l.crashes, l.cancel_requested, l.cancel_reason, j.max_attempts
   FROM baton.live l JOIN baton.job j ON j.id = l.id JOIN baton.name b ON b.id = j.birthplace
   JOIN baton.author a ON a.id = l.author LEFT JOIN baton.name w ON w.id = l.worker
   WHERE l.running AND l.lease = ANY ($1::int[]) ORDER BY l.seq FOR UPDATE OF l`,
);

interface Lost {
  readonly seq: number;
  readonly id: JobId;
  readonly worker: string | null;
  readonly node: Author["node"];
  readonly owner_epoch: number;
  readonly killed: string | null;
  readonly failures: number;
  readonly interruptions: number;
  readonly crashes: number;
  readonly cancel_requested: boolean;
  readonly cancel_reason: string | null;
  readonly max_attempts: number;
}

/** Leases: who lives prolongs them, and what the dead held is put back. */
export class Recover {
  readonly #ledger: Ledger;
  readonly #terms: PostgresTerms;

  constructor(ledger: Ledger, terms: PostgresTerms) {
    this.#ledger = ledger;
    this.#terms = terms;
  }

  async renew(lease: LeaseId, ttlMs: number): Promise<Renewal> {
    const { db } = this.#ledger;
    const [held] = await db.query<{ id: number }>(RENEW, [this.#ledger.now(), lease, ttlMs]);
    if (!held) return { held: false, cancelled: [] };
    const cancelled = await db.query<Renewal["cancelled"][number]>(UNWANTED, [held.id]);
    return { held: true, cancelled };
  }

  run(which: Abandoned, budgets: Budgets, fence: Term): Promise<readonly Recovered[]> {
    return this.#ledger.db.transaction(async (tx) => {
      await this.#terms.hold(tx, fence);
      const leases = await this.#endLeases(tx, which);
      if (leases.length === 0) return [];
      await tx.query(MAY_SCAN);
      const lost = await tx.query<Lost>(LOST, [int4s(leases)]);
      return this.#putBack(tx, lost, budgets, fence.epoch);
    });
  }

  async #endLeases(tx: Queryable, which: Abandoned): Promise<number[]> {
    const rows =
      which.by === "expiry"
        ? await tx.query<{ id: number }>(END_EXPIRED, [this.#ledger.now()])
        : await tx.query<{ id: number }>(END_OF_NODE, [which.by === "node" ? which.node : null, which.except]);
    return rows.map((row) => row.id);
  }

  async #putBack(
    tx: Queryable,
    lost: readonly Lost[],
    budgets: Budgets,
    leaderEpoch: number,
  ): Promise<Recovered[]> {
    const authors = new Map<string, number>();
    for (const { node, owner_epoch: ownerEpoch } of lost) {
      const key = `${node}/${ownerEpoch}`;
      if (authors.has(key)) continue;
      authors.set(key, await this.#ledger.authorIdWithin(tx, { node, ownerEpoch, leaderEpoch }));
    }
    const endings: Ending[] = [];
    const returns: Return[] = [];
    const recovered = lost.map((job): Recovered => {
      const worker = job.worker ?? "unknown";
      const killed = [...(JSON.parse(job.killed ?? "[]") as string[]), worker];
      const author = authors.get(`${job.node}/${job.owner_epoch}`)!;
      const spent = { ...NOTHING, crashes: 1 };
      const crashes = job.crashes + 1;
      const change = { seq: job.seq, spent, killed: JSON.stringify(killed), author };
      const end = verdictOn(job, budgets, killed);
      if (end) {
        endings.push({
          ...change,
          status: STATUS[end.status],
          error: JSON.stringify(end.error),
          result: null,
        });
        return { id: job.id, worker, status: end.status, crashes };
      }
      returns.push({ ...change, delayMs: null, error: null, suspect: isSuspect(crashes, budgets) });
      return { id: job.id, worker, status: "queued", crashes };
    });
    await endRuns(tx, endings, this.#ledger.now());
    await returnRuns(tx, returns, this.#ledger.now());
    return recovered;
  }
}

/** Null when the job runs again. */
function verdictOn(
  job: Lost,
  budgets: Budgets,
  killed: readonly string[],
): { status: "failed" | "cancelled"; error: JobError } | null {
  if (job.cancel_requested) {
    const message = job.cancel_reason ?? "cancelled while its node died";
    return { status: "cancelled", error: { code: "CANCELLED", message } };
  }
  const { failures, interruptions, crashes, max_attempts: maxAttempts } = job;
  const error = crashError({ failures, interruptions, crashes, maxAttempts }, budgets, killed);
  return error && { status: "failed", error };
}

/** Jobs that a new one meets in PostgreSQL: one with its id, or one that has its idempotency key. */

import type { JobId } from "../../../core/ids.ts";
import { keyName, keyVerdict } from "../../../core/jobs/idempotency.ts";
import { texts, uuids } from "../../../platform/drivers/postgres/arrays.ts";
import { type Queryable, read, write } from "../../../platform/drivers/postgres/postgres.ts";
import { STATUS, statusName } from "../../job-row.ts";
import type { NewJob, Submitted } from "../../store.ts";
import { STATE_OF_JOB } from "./ranges.ts";
import { STATUS_NOW } from "./read.ts";
import { uuidOf } from "./store-cache.ts";

const EXISTING = read(
  "submit-existing",
  `SELECT j.id AS uuid, n.name AS birthplace, j.idempotency_key AS "idempotencyKey", j.key_task AS task,
     CASE WHEN j.key_task IS NOT NULL THEN j.payload END AS payload, ${STATUS_NOW} AS status
   FROM (
     SELECT id FROM baton.job WHERE id = ANY ($2::uuid[])
     UNION SELECT id FROM baton.job WHERE idempotency_key = ANY ($3::text[]) AND key_task IS NOT NULL
   ) AS found
   JOIN baton.job j USING (id) JOIN baton.name n ON n.id = j.birthplace ${STATE_OF_JOB}`,
);

/** First the locks, which a retry takes as well, and then a look at what is true under them. In order: see `any`. */
const LOCK_KEYS = write(
  "submit-lock-keys",
  `SELECT FROM baton.job WHERE id = ANY ($1::uuid[]) AND key_task IS NOT NULL
   ORDER BY idempotency_key, key_task FOR UPDATE`,
);
const FREE_KEYS = write(
  "submit-free-keys",
  `UPDATE baton.job SET key_task = NULL WHERE id = ANY (ARRAY(
     SELECT j.id FROM baton.job j ${STATE_OF_JOB} WHERE j.id = ANY ($1::uuid[]) AND d.status = ${STATUS.failed}
   ))`,
);

interface Existing {
  readonly uuid: string;
  readonly birthplace: string;
  readonly idempotencyKey: string | null;
  /** Null unless the key belongs to it. */
  readonly task: string | null;
  readonly payload: string | null;
  readonly status: number;
}

type KeyHolder = Existing & { readonly task: string; readonly payload: string };

/** `free`: a failed job has its key, which must be taken from that one first. `gone`: what was in its way has been removed. */
export type Tried = Submitted | { readonly free: string } | "gone";

/** What is to be said of a job that could not be stored. */
export async function jobsInTheWay(
  db: Queryable,
  now: number | null,
  jobs: readonly NewJob[],
): Promise<(job: NewJob) => Tried> {
  const keys = jobs.flatMap((job) => job.idempotencyKey ?? []);
  const rows = await db.query<Existing>(EXISTING, [
    now,
    uuids(jobs.map((job) => uuidOf(job.id))),
    texts(keys),
  ]);
  const byUuid = new Map(rows.map((row) => [row.uuid, row]));
  const holders = rows.filter((row): row is KeyHolder => row.task !== null);
  const byKey = new Map(holders.map((row) => [keyName(row), row]));
  return (job) => {
    const same = byUuid.get(uuidOf(job.id));
    const holder = hasKey(job) ? byKey.get(keyName(job)) : undefined;
    const found = same ?? holder;
    if (!found) return "gone";
    const id = `${found.birthplace}-${found.uuid}` as JobId;
    const status = statusName(found.status);
    const verdict = same ? "existed" : keyVerdict({ status, payload: holder!.payload }, job);
    if (verdict === "reused") return { free: found.uuid };
    return { id, status, existed: true, ...(verdict === "conflict" && { conflict: true }) };
  };
}

/** In a transaction: takes their keys from these jobs, unless one of them has not failed any more. */
export async function freeKeys(tx: Queryable, jobs: readonly string[]): Promise<void> {
  await tx.query(LOCK_KEYS, [uuids(jobs)]);
  await tx.query(FREE_KEYS, [uuids(jobs)]);
}

export function hasKey({ idempotencyKey }: NewJob): boolean {
  return idempotencyKey !== null;
}

export function isFree(tried: Tried): tried is Extract<Tried, { readonly free: string }> {
  return typeof tried === "object" && "free" in tried;
}

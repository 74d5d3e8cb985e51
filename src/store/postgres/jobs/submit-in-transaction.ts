/**
 * Submits jobs on a connection of the caller, inside the caller's transaction, through an SQL function. The caller's
 * role needs only USAGE on the schema and EXECUTE on that function, and no access to the tables.
 */

import { BatonError } from "../../../core/errors.ts";
import type { JobId } from "../../../core/ids.ts";
import { keyConflict } from "../../../core/jobs/idempotency.ts";
import { COLUMN_FIELDS, type Fields } from "../../../core/jobs/job-fields.ts";
import { inSchema, read, write } from "../../../platform/drivers/postgres/postgres.ts";
import type { Author, JobStore, NewJob, Submitted } from "../../store.ts";
import { birthplaceOf, type StoreCache, uuidOf } from "./store-cache.ts";

/** Every parameter is a text with an explicit type: not every driver infers types, or sends a number as the type that it is cast to. */
const SUBMIT_PREPARED = `SELECT job_id AS id, status, existed FROM baton.submit_prepared(
  $1::text::jsonb, $2::text, $3::text::bigint, $4::text::bigint, $5::text, $6::text::bigint, $7::text)`;

/** A call of its own: only an open transaction has the same number in the next one. */
const TRANSACTION = "SELECT txid_current()::text AS transaction";

/** A schema is identified by the time of its creation. A copy of a database is not distinguished from the original. */
const CLUSTER = read(
  "submit-cluster",
  "SELECT (extract(epoch FROM ran_at) * 1000000)::bigint::text AS cluster FROM baton.migration WHERE version = 1",
);

/** Longer than a commit that creates the same kind. A transaction that holds it longer may be that of our own caller. */
const PATIENCE = write("submit-within-patience", "SET LOCAL lock_timeout = '250ms'");
const MAKE_KIND = write(
  "submit-within-kind",
  "INSERT INTO baton.kind (queue, task) VALUES ($1, $2) ON CONFLICT DO NOTHING",
);

const OTHER_CLUSTER = "BT001";
const KEY_CONFLICT = "BT002";
const NO_TRANSACTION = "BT003";
/** No such function, schema or table. */
const NOT_THERE = new Set(["42883", "3F000", "42P01"]);
const NO_RIGHT = "42501";

export function submitInTransaction(cache: StoreCache): NonNullable<JobStore["submitWithin"]> {
  const { db } = cache;
  let cluster: string | null = null;
  return async (client, jobs, author) => {
    if (jobs.length === 0) return [];
    await learnNames(cache, jobs, author);
    cluster ??= (await db.query<{ cluster: string }>(CLUSTER))[0]!.cluster;
    const { node, ownerEpoch, leaderEpoch } = author;
    const batch = JSON.stringify(jobs.map(prepared));
    const now = cache.now();
    try {
      const [seen] = (await client.query(TRANSACTION, [])).rows as readonly { transaction: string }[];
      const numbers = [String(ownerEpoch), String(leaderEpoch)];
      const values = [batch, node, ...numbers, cluster, now === null ? null : String(now), seen!.transaction];
      const { rows } = await client.query(inSchema(SUBMIT_PREPARED, db.schema), values);
      return rows as readonly Submitted[];
    } catch (error) {
      throw explained(error, db.schema, jobs);
    }
  };
}

/**
 * Learns the numbers of the names over another connection, committed at once: the function would create them as well, but
 * other submitters of the same names would then wait for the caller's commit.
 */
async function learnNames(cache: StoreCache, jobs: readonly NewJob[], author: Author): Promise<void> {
  await cache.authorId(author);
  for (const { id, queue, task } of jobs) {
    const birthplace = birthplaceOf(id);
    if (cache.knownNameId(birthplace) === null) await cache.nameId(birthplace);
    if (cache.knownKindId(queue, task) === null) await learnKind(cache, queue, task);
  }
}

/** Does not wait for a kind that the caller's own transaction has created; the function finds it there. */
async function learnKind(cache: StoreCache, queue: string, task: string): Promise<void> {
  try {
    await cache.db.transaction(async (tx) => {
      await tx.query(PATIENCE);
      await tx.query(MAKE_KIND, [queue, task]);
    });
  } catch {
    return;
  }
  await cache.kindId(queue, task);
}

function prepared(job: NewJob): Record<string, unknown> {
  return {
    id: uuidOf(job.id),
    birthplace: birthplaceOf(job.id),
    task: job.task,
    queue: job.queue,
    delay_ms: job.delayMs,
    run_at: job.runAt,
    ...Object.fromEntries(COLUMN_FIELDS.map(({ wire, name }) => [wire, (job as unknown as Fields)[name]])),
    ...(job.keyReuse && { key_reuse: job.keyReuse }),
    ...(job.trace && { trace: job.trace }),
  };
}

/** Only misuse of the client becomes a BatonError: other errors of the database concern the caller's transaction. */
function explained(error: unknown, schema: string, jobs: readonly NewJob[]): unknown {
  const said = databaseErrorIn(error);
  const { code } = said;
  if (code === NO_TRANSACTION) {
    const rest = "has no open transaction, so the job would not be stored with your rows; begin one first";
    return refused(rest, error);
  }
  if (code === OTHER_CLUSTER) {
    return refused("is connected to the database of another cluster; connect it to the node's own", error);
  }
  if (code === KEY_CONFLICT) return conflictIn(said, jobs);
  if (typeof code === "string" && NOT_THERE.has(code)) {
    const rest = `is connected to a database without Baton in schema ${schema}; connect it to the node's own`;
    return refused(rest, error);
  }
  if (code === NO_RIGHT) {
    const rest = `may not submit jobs; grant its role USAGE on schema ${schema} and EXECUTE on function ${schema}.submit_prepared`;
    return refused(rest, error);
  }
  return error;
}

/** In the words of node-postgres. Another copy of it, or another library, may have thrown it. */
type DatabaseError = Partial<Record<"code" | "detail" | "column", string>>;

const SQLSTATE = /^[0-9A-Z]{5}$/;

/** The error of the database in what a library threw: itself, or wrapped. */
function databaseErrorIn(error: unknown, depth = 0): DatabaseError {
  if (typeof error !== "object" || error === null || depth > 4) return {};
  const { code, originalCode, ...rest } = error as Record<string, unknown>;
  const state = [originalCode, code].find((text) => typeof text === "string" && SQLSTATE.test(text));
  const wrapped = error as Record<"cause" | "driverError" | "meta" | "driverAdapterError", unknown>;
  for (const inner of [wrapped.cause, wrapped.driverError, wrapped.meta, wrapped.driverAdapterError]) {
    const found = databaseErrorIn(inner, depth + 1);
    if (found.code !== undefined) return found;
  }
  return state === undefined ? {} : { ...(rest as DatabaseError), code: state as string };
}

function conflictIn({ detail, column }: DatabaseError, jobs: readonly NewJob[]): BatonError {
  const at = Number(/\d+/.exec(column ?? "")?.[0] ?? 0);
  return keyConflict(jobs, at, detail as JobId);
}

function refused(rest: string, cause: unknown): BatonError {
  return new BatonError("BAD_REQUEST", `client ${rest}`, { field: "client" }, { cause });
}

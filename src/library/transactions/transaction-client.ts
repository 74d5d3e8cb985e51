/**
 * Transactions of the libraries by which programs talk to PostgreSQL, as what jobs can be submitted through. Told apart by their
 * shape: none of the libraries is a dependency.
 *
 * Whether a transaction is open is not asked here. The database says so at each submit, for all of them alike
 * (store/postgres/jobs/submit-in-transaction.ts).
 */

import { BatonError } from "../../core/errors.ts";
import type { TransactionClient } from "../../store/store.ts";

type Rows = readonly unknown[];

/** node-postgres: a client on which BEGIN has been sent. TypeORM's EntityManager and QueryRunner answer with the rows alone. */
export interface QueryingTransaction {
  query(text: string, values: any[]): Promise<{ readonly rows: Rows } | Rows>;
}

/** Drizzle: the `tx` of `db.transaction(async (tx) => …)`. */
export interface DrizzleTransaction {
  execute(query: any): PromiseLike<unknown>;
  rollback(): never;
}

/** Kysely: the `trx` of `db.transaction().execute(async (trx) => …)`, or of `startTransaction()`. */
export interface KyselyTransaction {
  readonly isTransaction: boolean;
  executeQuery(query: any): Promise<{ readonly rows: Rows }>;
}

/** Knex: the `trx` of `knex.transaction(async (trx) => …)`. */
export interface KnexTransaction {
  readonly isTransaction?: boolean;
  raw(text: string, values: any): PromiseLike<{ readonly rows: Rows }>;
}

/** Prisma: the `tx` of `prisma.$transaction(async (tx) => …)`. */
export interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...values: any[]): PromiseLike<unknown>;
}

export type AnyTransaction =
  | QueryingTransaction
  | DrizzleTransaction
  | KyselyTransaction
  | KnexTransaction
  | PrismaTransaction;

type Query = TransactionClient["query"];

/** Of which library it is, by a method that no other one has; null for another. The order matters: Drizzle's tx of today has no `query` function. */
const LIBRARIES: readonly ((transaction: any) => Query | null)[] = [
  (prisma) =>
    isMethod(prisma, "$queryRawUnsafe")
      ? async (text, values) => asRows(await prisma.$queryRawUnsafe(text, ...values))
      : null,
  (kysely) =>
    isMethod(kysely, "executeQuery")
      ? async (text, values) => asRows(await kysely.executeQuery(compiledQuery(text, values)))
      : null,
  (knex) =>
    isMethod(knex, "raw")
      ? async (text, values) => asRows(await knex.raw(...withQuestionMarks(text, values)))
      : null,
  (drizzle) =>
    isMethod(drizzle, "execute") && isMethod(drizzle, "rollback")
      ? async (text, values) => asRows(await drizzle.execute(drizzleQuery(text, values)))
      : null,
  (client) =>
    isMethod(client, "query") ? async (text, values) => asRows(await client.query(text, values)) : null,
];

export function transactionClient(transaction: AnyTransaction): TransactionClient {
  // A pool runs each query on a connection of its choice; the same of a whole database.
  const instead = noTransaction(transaction);
  if (instead) throw refused(instead);
  for (const queryOf of LIBRARIES) {
    const query = queryOf(transaction);
    if (query) return { query };
  }
  throw refused(
    "is no transaction that is known here; give that of node-postgres, Drizzle, Kysely, Knex, Prisma or TypeORM, or an object with query(text, values)",
  );
}

/** What to say of an object that certainly is no transaction; null for any other. */
function noTransaction(given: any): string | null {
  if (typeof given?.totalCount === "number")
    return "is a pool; give the client from pool.connect() on which the transaction is open";
  if (given?.isTransaction === false)
    return "is the whole database and no transaction; give the trx that its transaction() passes on";
  if (isMethod(given, "$transaction") && isMethod(given, "$connect"))
    return "is the whole PrismaClient; give the tx of prisma.$transaction(async (tx) => …)";
  if (isMethod(given, "execute") && isMethod(given, "transaction") && !isMethod(given, "rollback"))
    return "is the whole database and no transaction; give the tx of db.transaction(async (tx) => …)";
  if (isMethod(given, "createQueryRunner") && isMethod(given, "transaction") && !("queryRunner" in given))
    return "is a DataSource; give the manager of dataSource.transaction(async (manager) => …)";
  return null;
}

function refused(rest: string): BatonError {
  return new BatonError("BAD_REQUEST", `client ${rest}`, { field: "client" });
}

function isMethod(given: any, name: string): boolean {
  const isObject = (typeof given === "object" && given !== null) || typeof given === "function";
  return isObject && typeof given[name] === "function";
}

function asRows(answer: unknown): { readonly rows: Rows } {
  return { rows: Array.isArray(answer) ? answer : (answer as { readonly rows: Rows }).rows };
}

/** As `CompiledQuery.raw` of Kysely makes it. */
function compiledQuery(sql: string, parameters: readonly unknown[]): object {
  const query = { kind: "RawNode", sqlFragments: [sql], parameters: [] };
  return { sql, parameters, query, queryId: { queryId: "baton" } };
}

/** What Drizzle asks of an `sql` of its own. */
function drizzleQuery(sql: string, params: readonly unknown[]): object {
  const query = { toQuery: () => ({ sql, params }) };
  return { ...query, getSQL: () => query };
}

/** Knex has `?` for the next value. Each value of ours is used once. */
function withQuestionMarks(text: string, values: readonly unknown[]): [text: string, values: unknown[]] {
  const used: unknown[] = [];
  const question = text.replaceAll(/\$(\d+)/g, (_, n: string) => {
    used.push(values[Number(n) - 1]);
    return "?";
  });
  return [question, used];
}

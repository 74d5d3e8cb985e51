/**
 * Scripts: reads and writes of rarely used tables, written once for both databases. A script is a generator that yields
 * statements and receives their rows. SQLite runs it synchronously inside its group commit; on PostgreSQL it is awaited
 * inside a transaction, and statements that are yielded together cost one round trip.
 *
 * A statement is written for PostgreSQL (`baton.table`, `$1`, casts, FOR SHARE); what SQLite does not know is removed.
 * `{now}` is the instant of the store's clock; in a statement that has it, `$1` is taken. A script decides before it
 * writes: it throws only while it has changed nothing.
 *
 * Statements for jobs are not written here: each database has its own.
 */

import type { Term } from "../core/leadership/term.ts";

export interface Sql {
  readonly name: string;
  readonly text: string;
}

export type Value = string | number | null;

interface Statement {
  readonly sql: Sql;
  readonly values: readonly Value[];
}

/** A statement, or other work inside the transaction, which may return a promise on PostgreSQL only. */
type Step = Statement | (() => unknown);

type Rows = readonly unknown[];
/** A statement yields its rows, other work its return value. */
export type Script<T> = Generator<readonly Step[], T, readonly unknown[]>;

/** Runs scripts. With a fence, only under the newest term of its role, which stays the newest until the commit. */
export interface Scripts {
  read<T>(script: () => Script<T>): Promise<T>;
  write<T>(script: () => Script<T>, fence?: Term): Promise<T>;
}

export function sql(name: string, text: string): Sql {
  return { name, text };
}

export function* query<Row>(statement: Sql, ...values: readonly Value[]): Script<readonly Row[]> {
  return (yield [{ sql: statement, values }])[0] as readonly Row[];
}

export function* call<T>(work: () => T | Promise<T>): Script<T> {
  return (yield [work])[0] as T;
}

export function* each(statement: Sql, rows: readonly (readonly Value[])[]): Script<void> {
  if (rows.length > 0) yield rows.map((values) => ({ sql: statement, values }));
}

/** `run` is left out for a script without statements. */
export function runNow<T>(script: Script<T>, run: (statement: Statement) => Rows = unexpected): T {
  let at = script.next();
  while (!at.done) at = script.next(at.value.map((step) => perform(step, run)));
  return at.value;
}

export async function runAwaited<T>(
  script: Script<T>,
  run: (statement: Statement) => Promise<Rows> = unexpected,
): Promise<T> {
  let at = script.next();
  while (!at.done) at = script.next(await Promise.all(at.value.map((step) => perform(step, run))));
  return at.value;
}

function unexpected({ sql: { name } }: Statement): never {
  throw new Error(`nothing runs the statement ${name}`);
}

function perform(step: Step, run: (statement: Statement) => unknown): unknown {
  return typeof step === "function" ? step() : run(step);
}

export function usesNow({ text }: Sql): boolean {
  return text.includes("{now}");
}

/** The text of a statement for SQLite. */
export function forSqlite(text: string): string {
  return text
    .replaceAll("{now}", "?1")
    .replaceAll(/\$(\d+)/g, "?$1")
    .replaceAll(/::\w+/g, "")
    .replaceAll("baton.", "")
    .replaceAll(/ COLLATE "C"| FOR (?:SHARE|UPDATE)/g, "");
}

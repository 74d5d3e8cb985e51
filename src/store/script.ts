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

export interface Step {
  readonly sql: Sql;
  readonly values: readonly Value[];
}

type Rows = readonly unknown[];
export type Script<T> = Generator<readonly Step[], T, readonly Rows[]>;

/** Runs scripts. Under a fence, only for the newest term of its role, which stays the newest until the end. */
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

/** The same statement for many rows. */
export function* each(statement: Sql, rows: readonly (readonly Value[])[]): Script<void> {
  if (rows.length > 0) yield rows.map((values) => ({ sql: statement, values }));
}

export function runNow<T>(script: Script<T>, run: (step: Step) => Rows): T {
  let at = script.next();
  while (!at.done) at = script.next(at.value.map(run));
  return at.value;
}

export async function runAwaited<T>(script: Script<T>, run: (step: Step) => Promise<Rows>): Promise<T> {
  let at = script.next();
  while (!at.done) at = script.next(await Promise.all(at.value.map(run)));
  return at.value;
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

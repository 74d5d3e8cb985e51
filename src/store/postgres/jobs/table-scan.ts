import { type Queryable, type Statement, write } from "../../../platform/drivers/postgres/postgres.ts";

/**
 * Walks through a hot table, and through nothing else: an index on the lease, the assignment, or on what runs would slow down
 * every claim instead. What is found is then looked up by its key, as everywhere.
 */
const MAY_SCAN = write("recover-may-scan", "SET LOCAL enable_seqscan = on");
const SCANNED = write("recover-scanned", "SET LOCAL enable_seqscan = off");

/** The three in one round trip, in a transaction. */
export async function scanTable<Row>(
  tx: Queryable,
  statement: Statement,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const [, rows] = await Promise.all([
    tx.query(MAY_SCAN),
    tx.query<Row>(statement, values),
    tx.query(SCANNED),
  ]);
  return rows;
}

import { type Queryable, type Statement, write } from "../../../platform/drivers/postgres/postgres.ts";

/**
 * Scans a hot table: an index on the lease, the assignment or the running jobs would slow down every claim. The rows that
 * are found are then read by their key.
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

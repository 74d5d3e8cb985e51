/**
 * Asks the database in which order things were committed: no write of a term may be committed after the grant of a later one.
 * The server needs `track_commit_timestamp=on`. The time is taken before the locks of a transaction are let go, so a grant
 * that waited for a write has a later one.
 */

import assert from "node:assert/strict";
import type { TestCluster } from "./cluster.ts";

export const COMMIT_ORDER_SETTINGS = ["track_commit_timestamp=on"];

/** From now on every grant leaves a row of its own: the row of a term only knows the last. */
export async function watchGrants(cluster: TestCluster): Promise<void> {
  await cluster.sql(`
    CREATE SCHEMA audit;
    CREATE TABLE audit.granted (role text, epoch bigint, leader text);
    CREATE FUNCTION audit.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO audit.granted VALUES (NEW.role, NEW.epoch, NEW.leader);
      RETURN NULL;
    END $$;
    CREATE TRIGGER noted AFTER UPDATE ON baton.term FOR EACH ROW WHEN (OLD.epoch <> NEW.epoch)
      EXECUTE FUNCTION audit.note()`);
}

/** What was committed under an older term than one that had been granted before. */
export function staleCommits(cluster: TestCluster): Promise<Record<string, unknown>[]> {
  return cluster.sql(`
    WITH granted AS (
      SELECT role, epoch, pg_xact_commit_timestamp(xmin) AS at FROM audit.granted
    ), written AS (
      SELECT 'scheduler' AS role, 'occurrence ' || schedule || '@' || at AS what, leader_epoch AS epoch,
        pg_xact_commit_timestamp(xmin) AS at FROM baton.occurrence
      UNION ALL
      SELECT 'metrics_aggregator', 'sample ' || n, leader_epoch, pg_xact_commit_timestamp(xmin) FROM baton.sample
    )
    SELECT w.what, w.epoch::int AS under, g.epoch::int AS granted, (w.at - g.at)::text AS later
    FROM written w JOIN granted g ON g.role = w.role AND g.epoch > w.epoch AND g.at <= w.at
    ORDER BY w.at`);
}

/** How many terms the scheduler has had since the watch began, and how many occurrences were noted. */
export async function assertNothingStale(
  cluster: TestCluster,
): Promise<{ readonly grants: number; readonly occurrences: number }> {
  assert.deepEqual(await staleCommits(cluster), []);
  const [row] = await cluster.sql(`
    SELECT (SELECT count(*)::int FROM audit.granted WHERE role = 'scheduler') AS grants,
      (SELECT count(DISTINCT epoch)::int FROM audit.granted WHERE role = 'scheduler') AS epochs,
      (SELECT count(*)::int FROM baton.occurrence) AS occurrences,
      (SELECT count(*)::int FROM baton.occurrence WHERE pg_xact_commit_timestamp(xmin) IS NULL) AS undated`);
  const { grants, epochs, occurrences, undated } = row as Record<string, number>;
  assert.equal(undated, 0, "the server notes when it commits");
  assert.equal(grants, epochs, "no epoch is granted twice");
  return { grants: grants!, occurrences: occurrences! };
}

/** Finished jobs put into a store's file at once, in the shape in which the store keeps those that really ran. */

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** The node must have been there before, with one job run, and must be stopped now. */
export function seedHistory(dir: string, count: number): void {
  const db = new DatabaseSync(join(dir, "baton.db"));
  try {
    // Nothing of it is worth anything after a crash, so it need not be durable while it is written.
    db.exec("PRAGMA synchronous = OFF; PRAGMA cache_size = -65536; BEGIN IMMEDIATE");
    const last = Number(db.prepare("SELECT max(seq) AS seq FROM job").get()!["seq"]);
    const model = db.prepare("SELECT queue FROM job WHERE seq = ?").get(last)!;
    // Ids with the time of their making, an hour ago and about 15 a millisecond, as a busy node mints them.
    const from = Date.now() - 3_600_000;
    const at = `(${from} + n / 15)`;
    const uuid = `printf('%08x-%04x-7%03x-8%03x-%012x', ${at} >> 16, ${at} & 65535, n % 4096, n % 997, n)`;
    db.exec(`
      WITH RECURSIVE every(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM every WHERE n < ${count})
      INSERT INTO job SELECT ${last} + n, substr(id, 1, length(id) - 36) || ${uuid},
        (${at} % (1 << 41)) * 4096 + n % 4096, task, queue, priority, payload, ${at}, max_attempts, timeout_ms,
        NULL, schedule, author, fresh FROM every, (SELECT * FROM job WHERE seq = ${last});
      INSERT INTO done SELECT j.seq, d.status, j.created_at + 5, j.created_at, d.job_epoch, d.attempts, d.failures,
        d.interruptions, d.crashes, j.created_at + 4, d.worker, d.lease, d.author, d.logs, d.progress,
        d.progress_message, d.cancel_requested, d.error, d.killed, d.result
        FROM job j, (SELECT * FROM done WHERE seq = ${last}) d WHERE j.seq > ${last};
      UPDATE cursor SET seq = ${last + count} WHERE name = 'head';`);
    const tally = db.prepare("UPDATE tally SET n = n + ? WHERE queue = ? AND status = 3");
    if (tally.run(count, model["queue"] as string).changes !== 1)
      throw new Error("the model job has not been counted as completed");
    db.exec("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    db.close();
  }
}

/**
 * Watches the database from within: triggers note every write that was accepted, with the epochs that it carried. What the
 * tables hold at the end would not tell of a result that was overwritten; this does. The notes of a transaction are dated by its
 * commit, which needs `track_commit_timestamp=on`.
 */

import { Pool } from "pg";
import { systemClock } from "../../../src/platform/clock.ts";
import { atEnd, type Scope } from "../../support/node-cleanup.ts";

export interface Claim {
  readonly job: string;
  readonly jobEpoch: number;
  readonly lease: string;
  readonly leaderEpoch: number;
}

const TRIES = 4;
/** Notes of the last minute or so. */
const RECENT = 2_000;

const WATCH = `
  CREATE SCHEMA audit;
  CREATE TABLE audit.granted (role text, epoch bigint, leader text);
  CREATE TABLE audit.wrote (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, what text, seq bigint, job_epoch int, lease text, leader_epoch bigint
  );
  CREATE INDEX ON audit.wrote (seq);
  CREATE FUNCTION audit.note_grant() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO audit.granted VALUES (NEW.role, NEW.epoch, NEW.leader);
    RETURN NULL;
  END $$;
  CREATE TRIGGER noted AFTER INSERT OR UPDATE ON baton.term FOR EACH ROW EXECUTE FUNCTION audit.note_grant();
  CREATE FUNCTION audit.note_run() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO audit.wrote (what, seq, job_epoch, lease, leader_epoch)
    SELECT TG_ARGV[0], NEW.seq + place, NEW.job_epoch, (SELECT name FROM baton.lease WHERE id = NEW.lease), a.leader_epoch
    FROM baton.author a, generate_series(0, NEW.n - 1) AS place WHERE a.id = NEW.author;
    RETURN NULL;
  END $$;
  CREATE TRIGGER claimed AFTER UPDATE ON baton.live FOR EACH ROW WHEN (NEW.started_at IS NOT NULL AND OLD.started_at IS NULL)
    EXECUTE FUNCTION audit.note_run('claimed');
  CREATE TRIGGER claimed_twice AFTER UPDATE ON baton.live FOR EACH ROW
    WHEN (NEW.started_at IS NOT NULL AND OLD.started_at IS NOT NULL AND NEW.job_epoch <> OLD.job_epoch) EXECUTE FUNCTION audit.note_run('stolen');
  CREATE TRIGGER returned AFTER UPDATE ON baton.live FOR EACH ROW WHEN (OLD.started_at IS NOT NULL AND NEW.started_at IS NULL)
    EXECUTE FUNCTION audit.note_run('returned');
  CREATE TRIGGER ended AFTER INSERT OR UPDATE ON baton.done FOR EACH ROW EXECUTE FUNCTION audit.note_run('ended');
  CREATE FUNCTION audit.note_agent() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO audit.wrote (what, leader_epoch) VALUES ('agent', NEW.leader_epoch);
    RETURN NULL;
  END $$;
  CREATE TRIGGER noted AFTER INSERT OR UPDATE ON baton.agent FOR EACH ROW EXECUTE FUNCTION audit.note_agent();
  CREATE FUNCTION audit.note_job() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO audit.wrote (what, seq, leader_epoch)
    SELECT 'submitted', NEW.seq, a.leader_epoch FROM baton.author a WHERE a.id = NEW.author;
    RETURN NULL;
  END $$;
  CREATE TRIGGER noted AFTER INSERT ON baton.job FOR EACH ROW WHEN (NEW.payload LIKE '%"by":"leader"%')
    EXECUTE FUNCTION audit.note_job()`;

/** The leader's writes and the grants in the order of their commits; each with the newest term granted before it. */
const STALE = `
  WITH granted AS (
    SELECT epoch, pg_xact_commit_timestamp(xmin) AS at FROM audit.granted WHERE role = 'scheduler'
  ), wrote AS (
    SELECT n, what, seq, leader_epoch, pg_xact_commit_timestamp(xmin) AS at FROM audit.wrote
  ), all_of_them AS (
    SELECT at, 0 AS place, epoch AS granted, NULL::bigint AS n, NULL AS what, NULL::bigint AS seq, NULL::bigint AS under FROM granted
    UNION ALL SELECT at, 1, NULL, n, what, seq, leader_epoch FROM wrote
  ), in_order AS (
    SELECT *, max(granted) OVER (ORDER BY at, place ROWS UNBOUNDED PRECEDING) AS newest FROM all_of_them
  )
  SELECT n, what, seq, under::int, newest::int, at::text FROM in_order WHERE under < newest ORDER BY at LIMIT 20`;

const JOB_ID = "b.name || '-' || j.id";
const CLAIM = `${JOB_ID} AS job, w.job_epoch AS "jobEpoch", w.lease, w.leader_epoch::int AS "leaderEpoch"`;
const CLAIMED = `
  FROM audit.wrote w JOIN baton.job j ON j.seq = w.seq JOIN baton.name b ON b.id = j.birthplace
  LEFT JOIN baton.live l ON l.seq = w.seq LEFT JOIN baton.done d ON d.seq = w.seq
  WHERE w.what = 'claimed' AND w.lease IS NOT NULL`;

export class Witness {
  readonly #pool: Pool;
  readonly #chance: () => number;
  /** Questions that were asked again because the connection broke. */
  again = 0;

  private constructor(url: string, chance: () => number) {
    this.#pool = new Pool({ connectionString: url, max: 6, application_name: "proof" });
    this.#pool.on("error", () => {}); // of a connection that nobody uses
    this.#chance = chance;
  }

  /** From now on; the tables are there. */
  static async watch(t: Scope, url: string, chance: () => number): Promise<Witness> {
    const witness = new Witness(url, chance);
    atEnd(t, () => witness.#pool.end());
    await witness.#pool.query(WATCH);
    return witness;
  }

  /** All of them only ask. */
  async sql<Row = Record<string, unknown>>(text: string): Promise<Row[]> {
    for (let tries = 1; ; tries++) {
      try {
        return (await this.#pool.query(text)).rows as Row[];
      } catch (error) {
        const { code = "" } = error as { code?: string };
        if (tries === TRIES || !/^(?:E[A-Z]+|57P0\d|08\d{3})$/.test(code)) throw error;
        this.again++;
        await systemClock.sleep(500);
      }
    }
  }

  /** Runs that are over and will never count again: the job has moved on to a later one. */
  superseded(limit: number): Promise<Claim[]> {
    return this.#some(`w.job_epoch < coalesce(d.job_epoch, l.job_epoch)`, limit);
  }

  /** Of those, the ones whose job is still open: what they say would count if nobody compared epochs. */
  overtaken(limit: number): Promise<Claim[]> {
    return this.sql<Claim>(`
      SELECT ${CLAIM} ${CLAIMED} AND w.seq IN (SELECT seq FROM baton.live) AND w.job_epoch < l.job_epoch
      ORDER BY w.n DESC LIMIT ${limit}`);
  }

  /** Runs whose end was accepted as the last word on their job. */
  accepted(limit: number): Promise<(Claim & { readonly status: number })[]> {
    return this.#some(`w.job_epoch = d.job_epoch`, limit, ", d.status") as Promise<
      (Claim & { readonly status: number })[]
    >;
  }

  /** Runs that go on. */
  running(limit: number): Promise<Claim[]> {
    return this.sql<Claim>(`
      SELECT ${CLAIM} ${CLAIMED} AND l.started_at IS NOT NULL AND w.job_epoch = l.job_epoch
        AND w.n >= (SELECT max(n) - ${RECENT} FROM audit.wrote) ORDER BY w.n DESC LIMIT ${limit}`);
  }

  async epoch(): Promise<number> {
    const [row] = await this.sql<{ epoch: number }>(
      "SELECT epoch::int FROM baton.term WHERE role = 'scheduler'",
    );
    return row?.epoch ?? 0;
  }

  async leaseExists(lease: string): Promise<boolean> {
    const quoted = lease.replaceAll("'", "''");
    return (await this.sql(`SELECT FROM baton.lease WHERE name = '${quoted}'`)).length > 0;
  }

  async counts(): Promise<{ readonly waiting: number; readonly running: number; readonly ended: number }> {
    const [row] = await this.sql<{ waiting: number; running: number; ended: number }>(`
      SELECT (SELECT coalesce(sum(n), 0)::int FROM baton.live WHERE started_at IS NULL) AS waiting,
        (SELECT coalesce(sum(n), 0)::int FROM baton.live WHERE started_at IS NOT NULL) AS running,
        (SELECT coalesce(sum(n), 0)::int FROM baton.done) AS ended`);
    return row!;
  }

  /** What was committed under an older term than one that had been granted before. */
  stale(): Promise<Record<string, unknown>[]> {
    return this.sql(STALE);
  }

  /** When the first job was leased under a later term than that, in ms of the wall clock; null if none was. */
  async leasedAfter(epoch: number): Promise<number | null> {
    const [row] = await this.sql<{ at: number | null }>(`
      SELECT min(extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000)::float8 AS at
      FROM audit.wrote WHERE what = 'claimed' AND leader_epoch > ${epoch}`);
    return row!.at;
  }

  /** From some point of the history on, half of the time a recent one: to sort all of it by chance would take longer every minute. */
  #some(which: string, limit: number, more = ""): Promise<Claim[]> {
    const from = this.#chance() < 0.5 ? this.#chance() : 1;
    return this.sql<Claim>(`
      SELECT ${CLAIM}${more} ${CLAIMED} AND ${which}
        AND w.n >= (SELECT least(max(n) * ${from}, max(n) - ${RECENT}) FROM audit.wrote)
      ORDER BY w.n LIMIT ${limit}`);
  }
}

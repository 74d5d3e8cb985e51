/**
 * A node of the first version, reduced to the statements that submit, claim, complete and purge jobs on PostgreSQL. They are
 * copies of that version's, so that a migration can be tried with nodes that know nothing of it: do not change them.
 */

import { Client } from "pg";
import { uuidAt } from "../../src/core/ids.ts";
import { systemRandom } from "../../src/platform/random.ts";

const SUBMIT = `
  WITH clock AS MATERIALIZED (SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now),
    number AS MATERIALIZED (SELECT ARRAY(SELECT nextval('baton.job_seq') FROM generate_series(1, $10::int)) AS first),
    fresh AS (
      INSERT INTO baton.job (created_at, author, birthplace, timeout_ms, kind, max_attempts, priority, seq, id, payload, trace)
      SELECT now, $2::int, $3::int, $4::bigint, $5::int, $6::int, $7::int, number.first[a.place / 128 + 1] + a.place % 128, a.id, a.payload, a.trace
      FROM clock, number, unnest($8::uuid[], $9::text[], $11::int[], $14::text[]) AS a (id, trace, place, payload)
    )
    INSERT INTO baton.live (seq, id, n, run_at, updated_at, kind, author, priority, later)
    SELECT number.first[r.at], r.id, r.n, now, now, $5::int, $2::int, $7::int, false
    FROM clock, number, unnest($12::uuid[], $13::int[]) WITH ORDINALITY AS r (id, n, at)`;

const CLAIM = `
  WITH clock AS MATERIALIZED (SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now),
    open AS MATERIALIZED (
      SELECT e.id FROM baton.lease e
      WHERE e.name = $2 AND (e.expires_at > (SELECT now FROM clock)
        OR $10::boolean AND NOT EXISTS (SELECT FROM baton.live l WHERE l.started_at IS NOT NULL AND l.lease = e.id))
    ),
    kinds AS MATERIALIZED (
      SELECT k.id FROM baton.kind k LEFT JOIN baton.queue q ON q.name = k.queue
      WHERE k.task = ANY ($4::text[]) AND ($5::text[] IS NULL OR k.queue = ANY ($5::text[]))
        AND q.paused IS NOT TRUE AND k.queue <> ALL ($11::text[]) AND EXISTS (SELECT FROM open)
      ORDER BY k.id
    ),
    few AS MATERIALIZED (SELECT WHERE (SELECT count(*) FROM kinds) <= 8),
    lines AS MATERIALIZED (
      SELECT id FROM kinds WHERE EXISTS (SELECT FROM few)
      UNION ALL (
        SELECT id FROM (
    SELECT kinds.id, head.n, head.priority, head.run_at, head.seq FROM kinds CROSS JOIN LATERAL (
      SELECT l.n, l.priority, l.run_at, l.seq FROM baton.live l WHERE l.kind = kinds.id AND l.started_at IS NULL AND NOT l.later AND NOT l.suspect AND true
      ORDER BY l.priority DESC, l.run_at, l.seq LIMIT 1
    ) AS head) AS heads WHERE NOT EXISTS (SELECT FROM few) ORDER BY priority DESC, run_at, seq LIMIT 8
      )
    ),
    picked AS MATERIALIZED (
      SELECT at, seq, suspect, priority, run_at, least(had, $6::int - before)::smallint AS n, had FROM (
        SELECT *, n AS had, sum(n) OVER (ORDER BY priority DESC, run_at, seq ROWS UNBOUNDED PRECEDING) - n AS before FROM ((
    SELECT head.* FROM lines CROSS JOIN LATERAL (
      SELECT l.ctid AS at, l.seq, l.n, l.priority, l.run_at, l.suspect FROM baton.live l
      WHERE l.kind = lines.id AND l.started_at IS NULL AND NOT l.later AND NOT l.suspect AND true
      ORDER BY l.priority DESC, l.run_at, l.seq LIMIT $12::int FOR UPDATE SKIP LOCKED
    ) AS head) UNION ALL (
    SELECT head.* FROM kinds CROSS JOIN LATERAL (
      SELECT l.ctid AS at, l.seq, l.n, l.priority, l.run_at, l.suspect FROM baton.live l
      WHERE l.kind = kinds.id AND l.started_at IS NULL AND NOT l.later AND l.suspect AND true
      ORDER BY l.priority DESC, l.run_at, l.seq LIMIT CASE WHEN $7::boolean THEN 1 ELSE 0 END FOR UPDATE SKIP LOCKED
    ) AS head ORDER BY priority DESC, run_at, seq LIMIT 1)) AS line
      ) AS counted WHERE before < $6::int
    ),
    cut AS MATERIALIZED (SELECT at, n FROM picked WHERE n < had),
    held AS MATERIALIZED (
      SELECT e.id FROM baton.lease e WHERE e.id = (SELECT id FROM open) AND EXISTS (SELECT FROM picked) FOR KEY SHARE
    ),
    taken AS (
      UPDATE baton.live l SET
    lease = held.id, job_epoch = l.job_epoch + 1, attempts = l.attempts + 1,
    updated_at = (SELECT now FROM clock), started_at = (SELECT now FROM clock), worker = $8, author = $9,
    progress = NULL, progress_message = NULL, assignment = NULL, n = CASE WHEN l.ctid = (SELECT at FROM cut) THEN (SELECT n FROM cut) ELSE l.n END
      FROM held WHERE l.ctid = ANY (ARRAY(SELECT at FROM picked))
      RETURNING l.seq, l.id, l.n, l.run_at, l.job_epoch, l.attempts, l.failures, l.interruptions, l.crashes
    ),
    rest AS (
      INSERT INTO baton.live (seq, id, n, run_at, updated_at, kind, author, priority, later)
      SELECT l.seq + cut.n, baton.id_at(l.id, cut.n), l.n - cut.n, l.run_at, l.updated_at, l.kind, l.author, l.priority, false
      FROM cut JOIN baton.live l ON l.ctid = cut.at WHERE l.seq IN (SELECT seq FROM taken)
    ),
    prolonged AS (
      UPDATE baton.lease e SET expires_at = (SELECT now FROM clock) + $3::bigint + $3::bigint / 32 FROM open
      WHERE e.id = open.id AND e.expires_at < (SELECT now FROM clock) + $3::bigint
    )
    SELECT j.seq, j.id, j.payload, j.created_at, j.run_at, CASE WHEN (j.kind, j.priority, j.birthplace, j.max_attempts)
            = ($13::int, $14::int, $15::int, $16::int)
          AND coalesce(j.timeout_ms, 0) = $17::bigint AND j.trace IS NULL THEN NULL ELSE concat_ws(' ', j.kind, j.priority, j.birthplace, j.max_attempts, coalesce(j.timeout_ms, 0), j.trace) END, NULL::text, NULL::smallint, NULL::boolean, NULL::boolean
    FROM baton.job j WHERE j.id = ANY (ARRAY(SELECT id FROM taken WHERE n = 1))
    UNION ALL
    SELECT t.seq, t.id, all_of_it.payloads, j.created_at, t.run_at, CASE WHEN (j.kind, j.priority, j.birthplace, j.max_attempts)
            = ($13::int, $14::int, $15::int, $16::int)
          AND coalesce(j.timeout_ms, 0) = $17::bigint AND j.trace IS NULL THEN NULL ELSE concat_ws(' ', j.kind, j.priority, j.birthplace, j.max_attempts, coalesce(j.timeout_ms, 0), j.trace) END, NULL::text, t.n, NULL::boolean, NULL::boolean
    FROM taken t JOIN baton.job j ON j.id = t.id CROSS JOIN LATERAL (
      SELECT string_agg(payload, '\u001e') AS payloads
      FROM (SELECT j.payload FROM baton.job j WHERE j.id BETWEEN t.id AND baton.id_at(t.id, t.n - 1) AND j.seq BETWEEN t.seq AND t.seq + t.n - 1 ORDER BY j.id) AS in_order
    ) AS all_of_it
    WHERE t.n > 1
    UNION ALL
    SELECT t.seq, NULL, NULL, NULL, t.run_at, NULL, concat_ws(' ', t.job_epoch, t.attempts, t.failures, t.interruptions, t.crashes), NULL, NULL::boolean, NULL::boolean
    FROM taken t WHERE t.job_epoch > 1 OR t.interruptions > 0
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
      EXISTS (SELECT FROM open) AND (EXISTS (SELECT FROM held) OR NOT EXISTS (SELECT FROM picked)), EXISTS (
      SELECT FROM (
    SELECT kinds.id, head.n, head.priority, head.run_at, head.seq FROM kinds CROSS JOIN LATERAL (
      SELECT l.n, l.priority, l.run_at, l.seq FROM baton.live l WHERE l.kind = kinds.id AND l.started_at IS NULL AND NOT l.later AND NOT l.suspect AND true
      ORDER BY l.priority DESC, l.run_at, l.seq LIMIT 1
    ) AS head) AS in_sight WHERE in_sight.n > 1 OR (SELECT count(*) FROM kinds) > 1
    )
    WHERE NOT EXISTS (SELECT FROM taken)`;

const COMPLETE = `
  WITH clock AS MATERIALIZED (SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now),
    piece AS MATERIALIZED (
      SELECT a.seq, a.n, a.result, coalesce(a.author, l.author) AS ended_by, baton.id_at(l.id, (a.seq - l.seq)::int) AS id,
        l.seq AS origin, l.id AS origin_id, l.seq + l.n AS origin_end, l.author, l.kind, l.updated_at, l.priority, l.later, l.run_at, l.started_at, l.worker, l.lease, l.logs, l.progress, l.progress_message, l.cancel_requested, l.job_epoch, l.attempts,
    l.failures, l.interruptions, l.crashes, l.killed
      FROM unnest($3::bigint[], $5::int[], $6::int[], $7::text[], $8::int[]) AS a (seq, n, job_epoch, result, author)
      CROSS JOIN LATERAL (
    SELECT * FROM (
      SELECT * FROM baton.live WHERE seq <= a.seq AND seq > a.seq - 128 ORDER BY seq DESC LIMIT 1 FOR UPDATE
    ) AS nearest WHERE nearest.seq + nearest.n > a.seq) AS l
      WHERE l.job_epoch = a.job_epoch AND a.seq + a.n <= l.seq + l.n AND l.started_at IS NOT NULL AND l.lease = (SELECT id FROM baton.lease WHERE name = $2)
    ),
    origins AS MATERIALIZED (SELECT origin, min(seq) AS first FROM piece GROUP BY origin),
    gone AS (DELETE FROM baton.live l USING origins o WHERE l.seq = o.origin AND o.first = o.origin),
    shortened AS (
      UPDATE baton.live l SET n = o.first - o.origin FROM origins o WHERE l.seq = o.origin AND o.first > o.origin
    ),
    behind AS (
      INSERT INTO baton.live (seq, id, n, run_at, updated_at, started_at, kind, author, worker, lease, job_epoch, attempts, priority, later)
      SELECT seq + n, baton.id_at(origin_id, (seq + n - origin)::int), until - seq - n, run_at, updated_at, started_at, kind, author, worker, lease, job_epoch, attempts, priority, later FROM (
        SELECT *, coalesce(lead(seq) OVER (PARTITION BY origin ORDER BY seq), origin_end) AS until FROM piece
      ) AS followed WHERE until > seq + n
    ),
    kept AS (
      INSERT INTO baton.done (seq, id, n, finished_at, status, result, author, kind, run_at, started_at, worker, lease, logs, progress, progress_message, cancel_requested, job_epoch, attempts,
    failures, interruptions, crashes, killed)
      SELECT seq, id, n, (SELECT now FROM clock), 3, result, ended_by, kind, run_at, started_at, worker, lease, logs, progress, progress_message, cancel_requested, job_epoch, attempts,
    failures, interruptions, crashes, killed FROM piece
    ),
    counted AS (INSERT INTO baton.tally (kind, status, n) SELECT kind, 3, sum(n) FROM piece GROUP BY kind)
    SELECT CASE WHEN (SELECT count(*) FROM piece) < $4::int THEN ARRAY(SELECT seq::text FROM piece) END AS accepted`;

const PURGE = `
  WITH clock AS MATERIALIZED (SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now),
     piece AS MATERIALIZED (
       SELECT seq, n, (SELECT now FROM clock) - finished_at AS age_ms, CASE status WHEN 3 THEN $2::bigint WHEN 4 THEN $3::bigint ELSE $4::bigint END AS kept_ms
       FROM baton.done WHERE seq > $6::bigint ORDER BY seq LIMIT 10000
     ),
     chosen AS MATERIALIZED (
       SELECT seq FROM (SELECT seq, sum(n) OVER (ORDER BY seq) - n AS before FROM piece WHERE age_ms >= kept_ms) AS old_ones
       WHERE before < $5::int
     ),
     free AS MATERIALIZED (
       SELECT d.seq, d.n FROM baton.done d JOIN baton.job j ON j.id BETWEEN d.id AND baton.id_at(d.id, d.n - 1) AND j.seq BETWEEN d.seq AND d.seq + d.n - 1
       WHERE d.seq = ANY (ARRAY(SELECT seq FROM chosen)) FOR UPDATE OF d, j SKIP LOCKED
     ),
     old AS MATERIALIZED (SELECT seq, n FROM free GROUP BY seq, n HAVING count(*) = n),
     done AS (DELETE FROM baton.done d USING old WHERE d.seq = old.seq RETURNING d.seq, d.id, d.n, d.status),
     logs AS (DELETE FROM baton.log g USING old WHERE g.seq = old.seq),
     past AS (DELETE FROM baton.past_run p USING old WHERE p.seq = old.seq),
     job AS (DELETE FROM baton.job j USING done WHERE j.id BETWEEN done.id AND baton.id_at(done.id, done.n - 1) AND j.seq BETWEEN done.seq AND done.seq + done.n - 1 RETURNING j.kind, done.status),
     tally AS (INSERT INTO baton.tally (kind, status, n) SELECT kind, status, -count(*) FROM job GROUP BY kind, status)
     SELECT (SELECT coalesce(sum(n), 0) FROM old) AS removed,
       (SELECT max(seq) FROM chosen WHERE (SELECT sum(n) FROM piece WHERE age_ms >= kept_ms) >= $5::int) AS last_chosen,
       (SELECT max(seq) FROM piece HAVING count(*) = 10000 AND max(age_ms) >= least($2::bigint, $3::bigint, $4::bigint)) AS last`;

/** As that version set up its sessions: plans are kept for good. */
const SET_UP = `SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off;
  SET enable_mergejoin = off; SET enable_hashjoin = off; SET statement_timeout = 15000`;
const LEASE_MS = 600_000;

/** Jobs with consecutive numbers that one claim took. */
export interface FirstVersionRun {
  readonly seq: number;
  readonly payloads: readonly string[];
}

export class FirstVersionNode implements AsyncDisposable {
  readonly #client: Client;
  readonly #name: string;
  #numbers: { author: number; birthplace: number; kind: number } | null = null;

  constructor(url: string, name: string) {
    this.#client = new Client({ connectionString: url, application_name: "baton" });
    this.#name = name;
  }

  async start(): Promise<void> {
    await this.#client.connect();
    await this.#client.query(SET_UP);
    const id = async (sql: string, values: readonly unknown[]): Promise<number> => {
      const { rows } = await this.#client.query(sql, [...values]);
      return (rows[0] as { id: number }).id;
    };
    this.#numbers = {
      author: await id(
        "INSERT INTO baton.author (node, owner_epoch, leader_epoch) VALUES ($1, 1, 1) ON CONFLICT (node, owner_epoch, leader_epoch) DO UPDATE SET node = excluded.node RETURNING id",
        [this.#name],
      ),
      birthplace: await id(
        "INSERT INTO baton.name (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id",
        [this.#name],
      ),
      kind: await id(
        "INSERT INTO baton.kind (queue, task) VALUES ('default', 'work') ON CONFLICT (task, queue) DO UPDATE SET queue = excluded.queue RETURNING id",
        [],
      ),
    };
    await this.#client.query(
      "INSERT INTO baton.lease (name, expires_at) VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2::bigint)",
      [this.#lease, LEASE_MS],
    );
  }

  /** As one range. */
  async submit(payloads: readonly string[]): Promise<void> {
    const { author, birthplace, kind } = this.#numbers!;
    // Far enough from the carry into the time, which no range crosses.
    const first = systemRandom.timedUuid().replace(/^(.{15})./, "$10");
    const ids = payloads.map((_, at) => uuidAt(first, at));
    const places = payloads.map((_, at) => at);
    const values = [null, author, birthplace, null, kind, 3, 0, ids, null, 1, places, [first], [ids.length]];
    await this.#query("submit", SUBMIT, [...values, payloads]);
  }

  async claim(limit: number): Promise<readonly FirstVersionRun[]> {
    const { author, birthplace, kind } = this.#numbers!;
    const shape = [kind, 0, birthplace, 3, 0];
    const who = [this.#lease, LEASE_MS, ["work"], null, limit, false, birthplace, author, true, []];
    const rows = await this.#query("claim", CLAIM, [null, ...who, limit, ...shape]);
    return rows
      .filter(([seq]) => seq !== null)
      .map(([seq, , payload]) => ({ seq: Number(seq), payloads: String(payload).split("\u001e") }));
  }

  /** True if the result was accepted. */
  async complete({ seq, payloads }: FirstVersionRun): Promise<boolean> {
    const piece = [[seq], 1, [payloads.length], [1], [null], [null]];
    const [row] = await this.#query("complete", COMPLETE, [null, this.#lease, ...piece]);
    return row![0] === null;
  }

  /** How many jobs are gone. */
  async purge(ageMs: number, limit: number): Promise<number> {
    const [row] = await this.#query("purge", PURGE, [null, ageMs, ageMs, ageMs, limit, 0]);
    return Number(row![0]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.end();
  }

  get #lease(): string {
    return `${this.#name}/1`;
  }

  /** Prepared once, like all statements of a node. */
  async #query(name: string, text: string, values: unknown[]): Promise<unknown[][]> {
    return (await this.#client.query({ name, text, values, rowMode: "array" })).rows as unknown[][];
  }
}

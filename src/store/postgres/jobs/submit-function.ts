/**
 * SQL functions that submit jobs: a job is committed or rolled back with the transaction that submits it.
 *
 *   submit, submit_many    for people and other languages: every field is checked as POST /jobs checks it
 *   submit_prepared        used by these two and by our nodes: stores jobs, resolves keys, wakes workers
 *   checked_job            validates one job, fills in the options of its task (table task, which nodes write at their
 *                          start), and converts it for submit_prepared
 *
 * They run with the rights of their owner: a role that may submit can neither read payloads nor write results. No role
 * may execute them until it is granted, and the search path is fixed, so that no other schema can inject an operator.
 *
 * Names become numbers as in the rest of the store, but existing numbers are only read: no submitter waits for the
 * commit of another one, except for the first two jobs ever of a queue and task, and for an idempotency key that is
 * used for the first time.
 *
 * Numbers and patterns are copied from core instead of imported: a change there needs a migration here, and tests that
 * compare the two fail until then.
 */

import { STATE_OF_JOB } from "./ranges.ts";

const RIGHTS = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp";

/**
 * The hint `jobs.ready` in the form of the channels, on their channel: they name it by the schema, and a channel has at most
 * 63 characters.
 */
export const WAKE = `pg_notify(
  CASE WHEN length('baton.hints') <= 63 THEN 'baton.hints'
    ELSE 'hints.' || left(encode(sha256(convert_to(rtrim('baton.', '.'), 'UTF8')), 'hex'), 32) END,
  'sql:0:[["jobs.ready","",null]]')`;

/** For "did you mean": those that share most pairs of letters with it. */
const NEAR_TASKS = `
CREATE FUNCTION baton.near_tasks(wanted text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT coalesce('; did you mean ' || string_agg(near.name, ' or ') || '?', '') FROM (
    SELECT t.name FROM baton.task t CROSS JOIN LATERAL (
      SELECT count(*) * 2.0 / (length(t.name) + length(wanted)) AS alike FROM generate_series(1, length(t.name) - 1) AS at
      WHERE strpos(lower(wanted), lower(substr(t.name, at, 2))) > 0
    ) AS pairs WHERE pairs.alike > 0.4 ORDER BY pairs.alike DESC, t.name LIMIT 3
  ) AS near
$$`;

const CHECKED_JOB = String.raw`
CREATE FUNCTION baton.checked_job(job jsonb, place text) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  field text;
  value jsonb;
  plain text;
  fits boolean;
  remedy text;
  low bigint;
  high bigint;
  due timestamptz;
  known baton.task%ROWTYPE;
  millis bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
BEGIN
  IF jsonb_typeof(job) IS DISTINCT FROM 'object' THEN
    RAISE EXCEPTION '% must be an object with at least a "task"', coalesce(nullif(rtrim(place, '.'), ''), 'a job')
      USING ERRCODE = '22023';
  END IF;
  FOR field, value IN SELECT entry.key, entry.value FROM jsonb_each(job) AS entry LOOP
    plain := value #>> '{}';
    CASE
      WHEN field = 'payload' THEN
        remedy := 'any JSON value of at most 64 levels';
        fits := NOT jsonb_path_exists(value, 'strict $.**{64} ? (@.type() == "array" || @.type() == "object")');
      WHEN field IN ('task', 'queue') THEN
        remedy := 'a name of 1 to 128 letters, digits or . _ : / - that begins and ends with a letter or a digit';
        fits := jsonb_typeof(value) = 'string'
          AND plain COLLATE "C" ~ '^[A-Za-z0-9](?:[A-Za-z0-9._:/-]{0,126}[A-Za-z0-9])?$';
      WHEN field = 'birthplace' THEN
        remedy := 'a name of 1 to 63 letters, digits or . _ - that begins and ends with a letter or a digit';
        fits := jsonb_typeof(value) = 'string'
          AND plain COLLATE "C" ~ '^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$';
      WHEN field IN ('priority', 'max_attempts', 'timeout_ms', 'delay_ms') THEN
        low := CASE field WHEN 'priority' THEN -100 WHEN 'delay_ms' THEN 0 ELSE 1 END;
        high := CASE field WHEN 'priority' THEN 100 WHEN 'max_attempts' THEN 1000 WHEN 'timeout_ms' THEN 2147483647
          ELSE 31622400000 END;
        remedy := format('a whole number from %s to %s', low, high);
        fits := CASE WHEN jsonb_typeof(value) = 'number'
          THEN value::numeric BETWEEN low AND high AND value::numeric = trunc(value::numeric) ELSE false END;
      WHEN field = 'run_at' THEN
        remedy := 'an ISO-8601 time from 1970 on with its zone, as 2026-01-31T09:00:00Z';
        fits := jsonb_typeof(value) = 'string'
          AND plain ~ '^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]\d\d:[0-5]\d)$';
        IF fits THEN
          BEGIN
            due := plain::timestamptz;
            fits := extract(epoch FROM due) >= 0;
          EXCEPTION WHEN data_exception THEN
            fits := false;
          END;
        END IF;
      WHEN field = 'idempotency_key' THEN
        remedy := 'a text of 1 to 255 characters without control characters';
        fits := jsonb_typeof(value) = 'string' AND char_length(plain) BETWEEN 1 AND 255
          AND plain !~ '[\u0001-\u001f\u007f-\u009f]';
      WHEN field = 'key_reuse' THEN
        remedy := 'after_failure or never';
        fits := value IN ('"after_failure"', '"never"');
      WHEN field = 'allow_unknown' THEN
        remedy := 'true or false';
        fits := jsonb_typeof(value) = 'boolean';
      WHEN field = 'tags' THEN
        remedy := 'a list of at most 16 texts of 1 to 64 characters without control characters';
        fits := CASE WHEN jsonb_typeof(value) = 'array' THEN jsonb_array_length(value) <= 16 AND NOT EXISTS (
          SELECT FROM jsonb_array_elements(value) AS t (tag)
          WHERE jsonb_typeof(t.tag) <> 'string' OR char_length(t.tag #>> '{}') NOT BETWEEN 1 AND 64
            OR t.tag #>> '{}' ~ '[\u0001-\u001f\u007f-\u009f]'
        ) ELSE false END;
      ELSE
        RAISE EXCEPTION '"%" is not a known field; known are task, payload, queue, priority, run_at, delay_ms, max_attempts, timeout_ms, idempotency_key, key_reuse, tags, birthplace, allow_unknown',
          place || left(field, 80) USING ERRCODE = '22023', COLUMN = place || left(field, 80);
    END CASE;
    IF NOT fits THEN
      RAISE EXCEPTION '"%" must be %, not %', place || field, remedy,
        CASE WHEN field = 'payload' THEN 'a deeper one'
          WHEN value = 'null' THEN 'null; leave it out instead (jsonb_strip_nulls helps)'
          ELSE left(value::text, 80) END
        USING ERRCODE = '22023', COLUMN = place || field;
    END IF;
  END LOOP;
  IF NOT job ? 'task' THEN
    RAISE EXCEPTION '"%" is missing; it must be the name of the task that does the job', place || 'task'
      USING ERRCODE = '22023', COLUMN = place || 'task';
  END IF;
  IF job ? 'key_reuse' AND NOT job ? 'idempotency_key' THEN
    RAISE EXCEPTION '"%" is about an "%"; give that as well', place || 'key_reuse', place || 'idempotency_key'
      USING ERRCODE = '22023', COLUMN = place || 'key_reuse';
  END IF;
  IF job ? 'run_at' AND job ? 'delay_ms' THEN
    RAISE EXCEPTION 'give "%" or "%", not both', place || 'run_at', place || 'delay_ms'
      USING ERRCODE = '22023', COLUMN = place || 'delay_ms';
  END IF;
  SELECT * INTO known FROM baton.task t WHERE t.name = job ->> 'task';
  IF NOT FOUND AND NOT coalesce((job -> 'allow_unknown')::boolean, false) THEN
    RAISE EXCEPTION 'no node of this cluster has had the task "%" so far%; start one that has it, or give "%": true',
      job ->> 'task', baton.near_tasks(job ->> 'task'), place || 'allow_unknown'
      USING ERRCODE = '22023', COLUMN = place || 'task';
  END IF;
  RETURN jsonb_build_object(
    -- A uuid of version 7: the time in front, the rest out of a random one.
    'id', (lpad(to_hex(millis), 12, '0') || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid,
    'birthplace', coalesce(job ->> 'birthplace', 'sql'),
    'task', job ->> 'task',
    'payload', coalesce((job -> 'payload')::text, 'null'),
    'queue', coalesce(job ->> 'queue', known.queue, 'default'),
    'priority', coalesce((job -> 'priority')::int, known.priority, 0),
    'delay_ms', coalesce((job -> 'delay_ms')::bigint, 0),
    'run_at', floor(extract(epoch FROM due) * 1000)::bigint,
    'max_attempts', coalesce((job -> 'max_attempts')::int, known.max_attempts, 3),
    'timeout_ms', coalesce((job -> 'timeout_ms')::bigint, CASE WHEN known.name IS NULL THEN 3600000 ELSE known.timeout_ms END),
    'idempotency_key', job ->> 'idempotency_key',
    'key_reuse', job ->> 'key_reuse',
    'tags', nullif(job -> 'tags', '[]')
  );
END $$`;

/** As `isSameJson` in core/jobs/idempotency.ts. Text that jsonb has no place for is the same only letter by letter. */
const SAME_JSON = `
CREATE FUNCTION baton.same_json(a text, b text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF a = b THEN RETURN true; END IF;
  RETURN a::jsonb = b::jsonb;
EXCEPTION WHEN data_exception THEN
  RETURN false;
END $$`;

/** How often a job is tried again when the one that stood in its way is removed before it is looked at. */
const TRIES = 5;

/**
 * `author`: the node that submits, null for the birthplace. `cluster`: whose jobs they are meant to be (see Cluster in
 * submit-in-transaction.ts); null for the owner of this schema. `at`: the instant, null for the database's clock.
 * `transaction`: the number of the one that a call before has seen, if the caller must have one open.
 */
const SUBMIT_PREPARED = String.raw`
CREATE FUNCTION baton.submit_prepared(
  jobs jsonb, author text DEFAULT NULL, owner_epoch bigint DEFAULT 0, leader_epoch bigint DEFAULT 0,
  cluster text DEFAULT NULL, at bigint DEFAULT NULL, transaction text DEFAULT NULL
) RETURNS TABLE (job_id text, status text, existed boolean)
LANGUAGE plpgsql ${RIGHTS}
-- Callers' sessions have plans made for whatever size a table had when they were young; the indexes are always right.
SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  now_ms bigint := coalesce(at, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  ids uuid[];
  births text[];
  authors text[];
  tasks text[];
  queues text[];
  payloads text[];
  priorities int[];
  dues bigint[];
  attempts int[];
  timeouts bigint[];
  keys text[];
  reuses text[];
  traces text[];
  tag_lists text[];
  waiting int[];
  stored uuid[];
  one record;
  earlier record;
  answer_ids text[];
  answer_statuses text[];
  answer_existed boolean[];
  wakes boolean := false;
BEGIN
  IF cluster <> (SELECT (extract(epoch FROM m.ran_at) * 1000000)::bigint::text FROM baton.migration m WHERE m.version = 1) THEN
    RAISE EXCEPTION 'these jobs are meant for another cluster than the one that is kept in database "%"', current_database()
      USING ERRCODE = 'BT001';
  END IF;
  IF transaction <> txid_current()::text THEN
    RAISE EXCEPTION 'no transaction is open' USING ERRCODE = 'BT003';
  END IF;

  SELECT array_agg(a.id ORDER BY n), array_agg(a.birthplace ORDER BY n), array_agg(coalesce(author, a.birthplace) ORDER BY n),
    array_agg(a.task ORDER BY n), array_agg(a.queue ORDER BY n), array_agg(a.payload ORDER BY n),
    array_agg(a.priority ORDER BY n), array_agg(coalesce(a.run_at, now_ms + nullif(a.delay_ms, 0)) ORDER BY n),
    array_agg(a.max_attempts ORDER BY n), array_agg(a.timeout_ms ORDER BY n), array_agg(a.idempotency_key ORDER BY n),
    array_agg(a.trace ORDER BY n), array_agg(a.tags ORDER BY n), array_agg(n::int ORDER BY n),
    array_agg(coalesce(a.key_reuse, 'after_failure') ORDER BY n)
  INTO ids, births, authors, tasks, queues, payloads, priorities, dues, attempts, timeouts, keys, traces, tag_lists, waiting, reuses
  FROM ROWS FROM (jsonb_to_recordset(jobs) AS (
    id uuid, birthplace text, task text, queue text, payload text, priority int, delay_ms bigint, run_at bigint,
    max_attempts int, timeout_ms bigint, idempotency_key text, trace text, tags text, key_reuse text
  )) WITH ORDINALITY AS a (
    id, birthplace, task, queue, payload, priority, delay_ms, run_at, max_attempts, timeout_ms, idempotency_key, trace, tags, key_reuse, n
  );
  IF waiting IS NULL THEN RETURN; END IF;
  answer_existed := array_fill(NULL::boolean, ARRAY[cardinality(waiting)]);

  -- In order, so that two transactions with the same new names do not wait for each other crosswise.
  INSERT INTO baton.kind (queue, task)
    SELECT DISTINCT a.queue, a.task FROM unnest(queues, tasks) AS a (queue, task)
    WHERE NOT EXISTS (SELECT FROM baton.kind k WHERE k.task = a.task AND k.queue = a.queue)
    ORDER BY 1, 2 ON CONFLICT DO NOTHING;
  INSERT INTO baton.name (name)
    SELECT DISTINCT a.name FROM unnest(births) AS a (name)
    WHERE NOT EXISTS (SELECT FROM baton.name b WHERE b.name = a.name)
    ORDER BY 1 ON CONFLICT DO NOTHING;
  INSERT INTO baton.author (node, owner_epoch, leader_epoch)
    SELECT DISTINCT a.node, submit_prepared.owner_epoch, submit_prepared.leader_epoch FROM unnest(authors) AS a (node)
    WHERE NOT EXISTS (
      SELECT FROM baton.author w WHERE w.node = a.node
        AND w.owner_epoch = submit_prepared.owner_epoch AND w.leader_epoch = submit_prepared.leader_epoch
    )
    ORDER BY 1 ON CONFLICT DO NOTHING;

  FOR tries IN 1..${TRIES} LOOP
    WITH fresh AS (
      INSERT INTO baton.job AS j (seq, id, created_at, run_at, timeout_ms, birthplace, kind, author, max_attempts, priority, payload, idempotency_key, key_task, trace, tags)
      SELECT a.seq, a.id, now_ms, a.run_at, a.timeout_ms,
        (SELECT b.id FROM baton.name b WHERE b.name = a.birthplace),
        (SELECT k.id FROM baton.kind k WHERE k.task = a.task AND k.queue = a.queue),
        (SELECT w.id FROM baton.author w WHERE w.node = a.author
           AND w.owner_epoch = submit_prepared.owner_epoch AND w.leader_epoch = submit_prepared.leader_epoch),
        a.max_attempts, a.priority, a.payload, a.idempotency_key, CASE WHEN a.idempotency_key IS NOT NULL THEN a.task END, a.trace,
        -- As JSON text, each once and in its order.
        CASE WHEN a.tags IS NOT NULL THEN ARRAY(
          SELECT t.tag FROM jsonb_array_elements_text(a.tags::jsonb) WITH ORDINALITY AS t (tag, n) GROUP BY t.tag ORDER BY min(t.n)
        ) END
      FROM (
        SELECT nextval('baton.job_seq') AS seq, u.*
        FROM unnest(ids, births, authors, tasks, queues, payloads, priorities, dues, attempts, timeouts, keys, traces, tag_lists) WITH ORDINALITY
          AS u (id, birthplace, author, task, queue, payload, priority, run_at, max_attempts, timeout_ms, idempotency_key, trace, tags, n)
        WHERE tries = 1 OR u.n = ANY (waiting)
      ) AS a ORDER BY a.idempotency_key NULLS FIRST, a.task, a.n
      ON CONFLICT DO NOTHING
      RETURNING j.seq, j.id, j.created_at, j.run_at, j.kind, j.author, j.priority
    ),
    line AS (
      INSERT INTO baton.live (seq, id, run_at, updated_at, kind, author, priority, later)
      SELECT f.seq, f.id, coalesce(f.run_at, f.created_at), f.created_at, f.kind, f.author, f.priority,
        coalesce(f.run_at > f.created_at, false)
      FROM fresh f
    )
    SELECT array_agg(f.id), wakes OR coalesce(bool_or(f.run_at IS NULL OR f.run_at <= f.created_at), false)
    INTO stored, wakes FROM fresh f;

    FOR one IN
      SELECT u.n, u.id, u.birthplace, u.task, u.payload, u.key, u.reuse, u.due, s.id IS NOT NULL AS stored
      FROM unnest(ids, births, tasks, payloads, keys, reuses, dues) WITH ORDINALITY AS u (id, birthplace, task, payload, key, reuse, due, n)
      LEFT JOIN unnest(stored) AS s (id) ON s.id = u.id
      WHERE tries = 1 OR u.n = ANY (waiting)
      -- Locks of failed jobs in the order in which keys are taken.
      ORDER BY u.key NULLS FIRST, u.task, u.n
    LOOP
      IF one.stored THEN
        answer_ids[one.n] := one.birthplace || '-' || one.id;
        answer_statuses[one.n] := CASE WHEN one.due > now_ms THEN 'scheduled' ELSE 'queued' END;
        answer_existed[one.n] := false;
        CONTINUE;
      END IF;
      -- The job that was there first. Without a row it has gone since, and there is room.
      SELECT b.name || '-' || j.id AS id, j.id AS uuid, j.payload,
        CASE coalesce(d.status, CASE WHEN l.started_at IS NOT NULL THEN 2 WHEN l.run_at > now_ms THEN 0 ELSE 1 END)
          WHEN 0 THEN 'scheduled' WHEN 1 THEN 'queued' WHEN 2 THEN 'processing'
          WHEN 3 THEN 'completed' WHEN 4 THEN 'failed' ELSE 'cancelled' END AS status
      INTO earlier
      FROM baton.job j JOIN baton.name b ON b.id = j.birthplace
        ${STATE_OF_JOB}
      WHERE j.id = coalesce(
        (SELECT k.id FROM baton.job k WHERE k.id = one.id),
        (SELECT k.id FROM baton.job k WHERE k.idempotency_key = one.key AND k.key_task = one.task)
      );
      IF FOUND AND earlier.uuid <> one.id AND earlier.status = 'failed' AND one.reuse = 'after_failure' THEN
        -- The lock that a retry takes as well; what is true under it counts. The next round stores the job.
        PERFORM FROM baton.job k WHERE k.id = earlier.uuid FOR UPDATE;
        UPDATE baton.job SET key_task = NULL WHERE id = earlier.uuid AND id IN (
          SELECT j.id FROM baton.job j ${STATE_OF_JOB} WHERE j.id = earlier.uuid AND d.status = 4
        );
      ELSIF FOUND THEN
        IF earlier.uuid <> one.id AND NOT baton.same_json(earlier.payload, one.payload) THEN
          RAISE EXCEPTION 'idempotency key "%" of task % belongs to job %, which has another payload; send the same payload, or another key',
            one.key, one.task, earlier.id USING ERRCODE = 'BT002', DETAIL = earlier.id,
              COLUMN = CASE WHEN cardinality(ids) > 1 THEN '[' || one.n - 1 || '].' ELSE '' END || 'idempotency_key';
        END IF;
        answer_ids[one.n] := earlier.id;
        answer_statuses[one.n] := earlier.status;
        answer_existed[one.n] := true;
      END IF;
    END LOOP;

    waiting := array_positions(answer_existed, NULL);
    EXIT WHEN cardinality(waiting) = 0;
  END LOOP;
  IF cardinality(waiting) > 0 THEN
    RAISE EXCEPTION 'jobs of the same key come and go too fast to tell which one this is; try again' USING ERRCODE = '40001';
  END IF;

  -- PostgreSQL sends it at the commit, once for all that one transaction submits, and never after a rollback.
  IF wakes THEN PERFORM ${WAKE}; END IF;
  RETURN QUERY SELECT a.id, a.status, a.existed FROM unnest(answer_ids, answer_statuses, answer_existed) AS a (id, status, existed);
END $$`;

/** As many as POST /jobs takes. No jobs at all are fine: that is what jsonb_agg makes of no rows. */
const SUBMIT_MANY = `
CREATE FUNCTION baton.submit_many(jobs jsonb) RETURNS TABLE (job_id text, status text, existed boolean)
LANGUAGE plpgsql ${RIGHTS} AS $$
BEGIN
  IF jobs IS NULL THEN RETURN; END IF;
  IF jsonb_typeof(jobs) <> 'array' THEN
    RAISE EXCEPTION '"jobs" must be an array of objects, not %', left(jobs::text, 80) USING ERRCODE = '22023', COLUMN = 'jobs';
  END IF;
  IF jsonb_array_length(jobs) > 10000 THEN
    RAISE EXCEPTION '"jobs" must have at most 10000 items, not %; submit them in several calls', jsonb_array_length(jobs)
      USING ERRCODE = '22023', COLUMN = 'jobs';
  END IF;
  RETURN QUERY SELECT answer.* FROM baton.submit_prepared((
    SELECT coalesce(jsonb_agg(baton.checked_job(each.job, '[' || each.n - 1 || '].') ORDER BY each.n), '[]')
    FROM jsonb_array_elements(jobs) WITH ORDINALITY AS each (job, n)
  )) AS answer;
END $$`;

const SUBMIT = `
CREATE FUNCTION baton.submit(task text, payload jsonb DEFAULT 'null', options jsonb DEFAULT '{}') RETURNS text
LANGUAGE plpgsql ${RIGHTS} AS $$
DECLARE
  more jsonb := coalesce(options, '{}');
BEGIN
  IF jsonb_typeof(more) <> 'object' OR more ?| ARRAY['task', 'payload'] THEN
    RAISE EXCEPTION '"options" must be an object without "task" and "payload", which are arguments, not %', left(more::text, 80)
      USING ERRCODE = '22023', COLUMN = 'options';
  END IF;
  more := more || jsonb_build_object('task', task, 'payload', coalesce(payload, 'null'));
  RETURN (SELECT answer.job_id FROM baton.submit_prepared(jsonb_build_array(baton.checked_job(more, ''))) AS answer);
END $$`;

export const SUBMIT_FUNCTIONS: readonly string[] = [
  NEAR_TASKS,
  CHECKED_JOB,
  SAME_JSON,
  SUBMIT_PREPARED,
  SUBMIT_MANY,
  SUBMIT,
  `REVOKE ALL ON FUNCTION baton.near_tasks(text), baton.checked_job(jsonb, text), baton.same_json(text, text), baton.submit_prepared(jsonb, text, bigint, bigint, text, bigint, text),
     baton.submit_many(jsonb), baton.submit(text, jsonb, jsonb) FROM PUBLIC`,
  // Of the names that a plain submit needs, none is then ever new.
  "INSERT INTO baton.name (name) VALUES ('sql') ON CONFLICT DO NOTHING",
  "INSERT INTO baton.author (node, owner_epoch, leader_epoch) VALUES ('sql', 0, 0) ON CONFLICT DO NOTHING",
];

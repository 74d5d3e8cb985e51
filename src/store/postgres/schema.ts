/**
 * The tables of the shared store.
 *
 *   job    what was requested; written once and never changed or moved until it is removed, but for `key_task`: its
 *          task while its idempotency key belongs to it, null when a later job has the key
 *   live   the state of a job that is not finished: the only hot table, narrow and small
 *   done   how a job ended
 *
 * Every job has a row in `job`, and one row of either `live` or `done` is about it, which may stand for a whole range of
 * jobs (jobs/ranges.ts). So an index of `job` makes ids and idempotency keys unique, and the payload is never copied.
 * Lists walk `live` and `done` by `seq`, the order of arrival; `job` itself is read by id only, which saves an index in
 * the path of every submit.
 *
 * A claim is a HOT update: no index of `live` contains a column that a claim changes, not even in its predicate (+53 %
 * measured). So a running job stays in the index of its line and is skipped there. The jobs that run under a lease, or
 * for too long, are found by a scan, which happens after a death and every few seconds. The predicate is `later`, and
 * not "run_at <= now": jobs scheduled for next week do not slow down those that are due.
 *
 * Not partitioned by time: each claim would have to look into all partitions of `job` (docs/decisions/0031-history.md). A
 * purge walks `done` by its key, a piece at a time.
 *
 * `assignment` is for dispatched jobs: it names the owner, which writes the reports of their workers. An owner is an
 * incarnation.
 *
 * `tally` counts finished jobs as a sum of rows: a batch adds one row, no transaction waits for a counter, and a purge
 * adds them up.
 */

import { SCRIPT_TABLES } from "../script-tables.ts";
import { ID_AT, RANGE_MAX } from "./jobs/ranges.ts";
import { SUBMIT_FUNCTIONS } from "./jobs/submit-function.ts";

export interface Migration {
  /**
   * Runs while nodes of the version before work: no statement may hold a lock for long that keeps them from reading or
   * writing (an index of `job` has to be built CONCURRENTLY, and not here), and no two hot tables are locked by one migration,
   * in which a settlement could meet it crosswise. docs/postgres.md has the statements that undo it.
   */
  readonly up: readonly string[];
  /**
   * The lowest schema that another version must know to run at the same time. Expand first: new tables and nullable columns
   * do not change it. Contract a release later, and raise it to the migration that introduced the replacement.
   */
  readonly compatibleFrom: number;
}

const JOBS: readonly string[] = [
  `CREATE SEQUENCE baton.job_seq INCREMENT BY ${RANGE_MAX}`,
  `CREATE TABLE baton.job (
    seq bigint NOT NULL,
    id uuid PRIMARY KEY,
    created_at bigint NOT NULL,
    run_at bigint,
    timeout_ms bigint,
    birthplace int NOT NULL,
    kind int NOT NULL,
    author int NOT NULL,
    max_attempts int NOT NULL,
    priority smallint NOT NULL,
    payload text NOT NULL,
    idempotency_key text,
    schedule text,
    trace text,
    tags text[],
    key_task text
  )`,
  "CREATE UNIQUE INDEX job_idempotency ON baton.job (idempotency_key, key_task) WHERE key_task IS NOT NULL",
  // The fill factor leaves room in a page for three versions of each row: those of a submit, a mark and a claim.
  `CREATE TABLE baton.live (
    seq bigint PRIMARY KEY,
    id uuid NOT NULL,
    run_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    started_at bigint,
    assignment bigint,
    kind int NOT NULL,
    author int NOT NULL,
    worker int,
    lease int,
    job_epoch int NOT NULL DEFAULT 0,
    attempts int NOT NULL DEFAULT 0,
    n smallint NOT NULL DEFAULT 1,
    failures smallint NOT NULL DEFAULT 0,
    interruptions smallint NOT NULL DEFAULT 0,
    crashes smallint NOT NULL DEFAULT 0,
    logs smallint NOT NULL DEFAULT 0,
    priority smallint NOT NULL,
    later boolean NOT NULL,
    suspect boolean NOT NULL DEFAULT false,
    cancel_requested boolean NOT NULL DEFAULT false,
    progress float8,
    progress_message text,
    cancel_reason text,
    error text,
    killed text
  ) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)`,
  "CREATE INDEX live_line ON baton.live (kind, priority DESC, run_at, seq) WHERE NOT later AND NOT suspect",
  "CREATE INDEX live_suspect ON baton.live (kind, priority DESC, run_at, seq) WHERE suspect AND NOT later",
  "CREATE INDEX live_later ON baton.live (run_at, seq) WHERE later",
  "CREATE INDEX live_unwanted ON baton.live (seq) WHERE cancel_requested",
  // `kind` is for lists, which would otherwise read `job` for every row that they skip. `owner`: of the job when it ended;
  // null if its worker wrote the result itself.
  `CREATE TABLE baton.done (
    seq bigint PRIMARY KEY,
    id uuid NOT NULL,
    finished_at bigint NOT NULL,
    run_at bigint NOT NULL,
    started_at bigint,
    assignment bigint,
    kind int NOT NULL,
    author int NOT NULL,
    worker int,
    lease int,
    owner int,
    owner_epoch int,
    job_epoch int NOT NULL,
    attempts int NOT NULL,
    n smallint NOT NULL DEFAULT 1,
    failures smallint NOT NULL,
    interruptions smallint NOT NULL,
    crashes smallint NOT NULL,
    logs smallint NOT NULL,
    status smallint NOT NULL,
    cancel_requested boolean NOT NULL,
    progress float8,
    progress_message text,
    error text,
    killed text,
    result text
  )`,
  "CREATE INDEX done_unusual ON baton.done (status, seq) WHERE status <> 3",
  "CREATE TABLE baton.tally (kind int NOT NULL, status smallint NOT NULL, n bigint NOT NULL)",
  `CREATE TABLE baton.log (
    seq bigint NOT NULL,
    at bigint NOT NULL,
    n int NOT NULL,
    job_epoch int NOT NULL,
    level text NOT NULL,
    message text NOT NULL,
    PRIMARY KEY (seq, n)
  )`,
  // A separate table, so that `live` stays narrow and a job that succeeds at once pays nothing.
  `CREATE TABLE baton.past_run (
    seq bigint NOT NULL,
    job_epoch int NOT NULL,
    started_at bigint NOT NULL,
    ended_at bigint NOT NULL,
    worker int,
    author int NOT NULL,
    assignment bigint,
    outcome text NOT NULL,
    error text,
    PRIMARY KEY (seq, job_epoch)
  )`,
  `CREATE TABLE baton.kind (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue text NOT NULL, task text NOT NULL, UNIQUE (task, queue)
  )`,
  "CREATE TABLE baton.name (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE)",
  `CREATE TABLE baton.author (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    node text NOT NULL,
    owner_epoch bigint NOT NULL,
    leader_epoch bigint NOT NULL,
    UNIQUE (node, owner_epoch, leader_epoch)
  )`,
  `CREATE TABLE baton.lease (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, expires_at bigint NOT NULL
  ) WITH (fillfactor = 50)`,
  // By incarnation, to find the leases of one that has ended.
  "CREATE INDEX lease_life ON baton.lease (split_part(name, '/', 2))",
  "CREATE TABLE baton.queue (name text PRIMARY KEY, paused boolean NOT NULL)",
  ID_AT,
  "REVOKE ALL ON FUNCTION baton.id_at(uuid, int) FROM PUBLIC",
];

/**
 * A list of jobs with a tag walks `job_tag` in the order of their numbers, which an index over arrays does not have.
 * Triggers write it, for every way to submit and to remove: a job without tags costs one look at a null.
 */
const TAGS: readonly string[] = [
  `CREATE TABLE baton.job_tag (
    value text COLLATE "C" NOT NULL, seq bigint NOT NULL, id uuid NOT NULL, PRIMARY KEY (value, seq)
  )`,
  `CREATE FUNCTION baton.job_tagged() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'INSERT' THEN
      INSERT INTO baton.job_tag (value, seq, id) SELECT tag, NEW.seq, NEW.id FROM unnest(NEW.tags) AS t (tag);
    ELSE
      DELETE FROM baton.job_tag WHERE value = ANY (OLD.tags) AND seq = OLD.seq;
    END IF;
    RETURN NULL;
  END $$`,
  "REVOKE ALL ON FUNCTION baton.job_tagged() FROM PUBLIC",
  `CREATE TRIGGER job_tagged AFTER INSERT ON baton.job
     FOR EACH ROW WHEN (NEW.tags IS NOT NULL) EXECUTE FUNCTION baton.job_tagged()`,
  `CREATE TRIGGER job_untagged AFTER DELETE ON baton.job
     FOR EACH ROW WHEN (OLD.tags IS NOT NULL) EXECUTE FUNCTION baton.job_tagged()`,
];

/**
 * The options of tasks, for callers in SQL. A node writes those of its tasks at its start; of two versions, those of the node
 * that started last count. Never removed: a job may wait for a node that has its task.
 */
const TASKS: readonly string[] = [
  `CREATE TABLE baton.task (
    name text COLLATE "C" PRIMARY KEY,
    queue text NOT NULL,
    priority int NOT NULL,
    max_attempts int NOT NULL,
    timeout_ms bigint
  )`,
];

/**
 * For sessions that wait for the lock of a leader role: the first of these locks that is free, or the first of all if it becomes
 * free in time, else null. An error that is caught inside is not logged by the server. A lock of the session outlives the
 * roll-back of the block.
 */
const TAKE_LOCK = `
  CREATE FUNCTION baton.take_lock(keys bigint[], wait_ms int) RETURNS bigint LANGUAGE plpgsql AS $$
  DECLARE key bigint;
  BEGIN
    FOREACH key IN ARRAY keys LOOP
      IF pg_try_advisory_lock(key) THEN RETURN key; END IF;
    END LOOP;
    IF wait_ms = 0 THEN RETURN NULL; END IF;
    PERFORM set_config('lock_timeout', wait_ms::text, true);
    PERFORM pg_advisory_lock(keys[1]);
    RETURN keys[1];
  EXCEPTION WHEN lock_not_available THEN
    RETURN NULL;
  END $$`;

/**
 * `leader` has the lease of each term: apart from `term`, which a leader's writes lock against a grant, so that a renewal
 * never waits for one of them. `locked`: the term depends on an advisory lock.
 */
const CLUSTER: readonly string[] = [
  `CREATE TABLE baton.leader (
    role text PRIMARY KEY,
    leader text NOT NULL,
    incarnation text NOT NULL,
    epoch bigint NOT NULL,
    acquired_at bigint NOT NULL,
    lease_until bigint NOT NULL,
    locked boolean NOT NULL
  ) WITH (fillfactor = 50)`,
  TAKE_LOCK,
  `CREATE TABLE baton.node (
    incarnation text PRIMARY KEY,
    name text NOT NULL,
    hostname text NOT NULL,
    url text,
    roles text[] NOT NULL,
    capabilities text[] NOT NULL,
    version text NOT NULL,
    status text NOT NULL,
    started_at bigint NOT NULL,
    last_heartbeat bigint NOT NULL,
    load jsonb NOT NULL,
    info jsonb NOT NULL,
    locked boolean NOT NULL,
    wish text,
    recovered boolean NOT NULL DEFAULT false
  ) WITH (fillfactor = 50)`,
  "CREATE UNIQUE INDEX node_name ON baton.node (name) WHERE status <> 'dead'",
  `CREATE TABLE baton.message (
    id bigint GENERATED ALWAYS AS IDENTITY,
    queue text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    body text NOT NULL,
    deliveries int NOT NULL DEFAULT 0,
    consumer text,
    taken_until bigint,
    PRIMARY KEY (queue, id)
  ) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)`,
  // Hints too large for a notification. A crash may lose them.
  "CREATE UNLOGGED TABLE baton.hint (id uuid PRIMARY KEY, at bigint NOT NULL, body text NOT NULL)",
  "CREATE SEQUENCE baton.assignment_seq",
  // `assignment` in `live` has no index, like every column that a claim changes. Instead, an assignment has the numbers of
  // its jobs, which saves a search among a million waiting jobs (0.3 s each time). It is removed with its last job, so that
  // there are few. 250 numbers fit into the row: outside of it, each change would cost two more writes.
  `CREATE TABLE baton.assignment (
    id bigint PRIMARY KEY,
    leader_epoch bigint NOT NULL,
    created_at bigint NOT NULL,
    unowned_since bigint,
    offered_at bigint,
    owner text,
    owner_name text,
    owner_epoch int NOT NULL DEFAULT 0,
    state text NOT NULL,
    jobs bigint[] NOT NULL
  ) WITH (fillfactor = 50, toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)`,
];

/**
 * A worker that has room, and its lease (jobs/slots.ts). A row is made, locked and removed, but not changed with each job, so that
 * it leaves no dead versions. The end of a lease waits for submits that have locked the row, and removes it.
 */
const SLOTS: readonly string[] = [
  `CREATE TABLE baton.slot (
    lease int PRIMARY KEY REFERENCES baton.lease ON DELETE CASCADE,
    lease_ms bigint NOT NULL,
    kinds int[] NOT NULL,
    worker int NOT NULL,
    author int NOT NULL,
    channel text NOT NULL
  )`,
];

/** Numbered from 1; each runs in its own transaction together with the record that it ran. Never edit one that was released. */
export const MIGRATIONS: readonly Migration[] = [
  { compatibleFrom: 1, up: [...JOBS, ...TAGS, ...TASKS, ...SUBMIT_FUNCTIONS, ...SCRIPT_TABLES, ...CLUSTER] },
  { compatibleFrom: 1, up: SLOTS },
];

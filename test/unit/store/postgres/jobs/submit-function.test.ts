import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, it, type TestContext } from "node:test";
import type { Client, DatabaseError } from "pg";
import { IdempotencyKey, Instant, Name } from "../../../../../src/api/bodies/fields.ts";
import { topics } from "../../../../../src/channels/channel-names.ts";
import { openChannels } from "../../../../../src/channels/open-channels.ts";
import { loadSettings } from "../../../../../src/config/load-settings.ts";
import { jobId, parseJobId, type JobId, type NodeName } from "../../../../../src/core/ids.ts";
import {
  ATTEMPTS_MAX,
  DELAY_MS_MAX,
  IDEMPOTENCY_KEY_LENGTH_MAX,
  PRIORITY_MAX,
  PRIORITY_MIN,
  TIMEOUT_MS_MAX,
} from "../../../../../src/core/jobs/job-fields.ts";
import { systemClock } from "../../../../../src/platform/clock.ts";
import { systemRandom } from "../../../../../src/platform/random.ts";
import { newJob } from "../../../../support/job-builders.ts";
import { blocksOf } from "../../../../support/markdown.ts";
import { atEnd } from "../../../../support/node-cleanup.ts";
import { submitWorlds, type SubmitWorld } from "../../../../support/submit-world.ts";
import { settleRuns } from "../../../../support/store-world.ts";
import { column } from "../../../../support/columns.ts";

const open = submitWorlds();

async function opened(t: TestContext) {
  const world = await open(t);
  return { world, session: await world.session() };
}

interface Answer {
  readonly job_id: JobId;
  readonly status: string;
  readonly existed: boolean;
}

async function submit(
  session: Client,
  task: string,
  payload: unknown = null,
  options: object = {},
): Promise<JobId> {
  const values = [task, JSON.stringify(payload), JSON.stringify(options)];
  const { rows } = await session.query<{ id: JobId }>("SELECT baton.submit($1, $2, $3) AS id", values);
  return rows[0]!.id;
}

async function submitMany(session: Client, jobs: unknown): Promise<Answer[]> {
  const values = [JSON.stringify(jobs)];
  return (await session.query<Answer>("SELECT * FROM baton.submit_many($1)", values)).rows;
}

async function refusal(attempt: Promise<unknown>): Promise<DatabaseError> {
  try {
    await attempt;
  } catch (error) {
    return error as DatabaseError;
  }
  assert.fail("it was not refused");
}

describe("a job submitted in SQL", () => {
  it("is stored, claimed and run as one that a node took", async (t) => {
    const { world, session } = await opened(t);
    const fields = {
      queue: "mails",
      priority: -7,
      max_attempts: 9,
      timeout_ms: 1_234,
      delay_ms: 0,
      idempotency_key: "letter-1",
      birthplace: "shop",
    };
    const payload = { to: "żółć ☂ 🚀", list: [1, 2.5, null, true], deep: { a: {} } };
    const id = await submit(session, "mail", payload, fields);
    const [normal] = await world.store.jobs.submit(
      [
        newJob({
          id: jobId("shop" as NodeName, systemRandom.timedUuid()),
          task: "mail",
          queue: "mails",
          priority: -7,
          payload: JSON.stringify(payload),
          maxAttempts: 9,
          timeoutMs: 1_234,
          idempotencyKey: "letter-2",
        }),
      ],
      { node: "shop" as NodeName, ownerEpoch: 0, leaderEpoch: 0 },
    );
    assert.equal(parseJobId(id)?.birthplace, "shop");

    const look = async (which: JobId) => {
      const job = (await world.store.jobs.get(which))!;
      assert.equal(job.runAt, job.createdAt);
      assert.equal(job.updatedAt, job.createdAt);
      const own = { id: 0, createdAt: 0, updatedAt: 0, runAt: 0, idempotencyKey: 0 };
      return { ...job, payload: JSON.parse(job.payload) as unknown, ...own };
    };
    assert.deepEqual(await look(id), await look(normal!.id));
    const stored = async (table: string, which: JobId) => {
      const own = "ARRAY['seq', 'id', 'created_at', 'updated_at', 'run_at', 'idempotency_key', 'payload']";
      const sql = `SELECT to_jsonb(r) - ${own} AS row FROM baton.${table} r WHERE id = '${which.slice(-36)}'`;
      return (await session.query<{ row: unknown }>(sql)).rows;
    };
    for (const table of ["job", "live"])
      assert.deepEqual(await stored(table, id), await stored(table, normal!.id), table);

    const [first, second] = await world.claim("mail");
    assert.deepEqual([first?.id, second?.id], [id, normal!.id]);
    const alike = { id: 0, ref: 0, createdAt: 0, runAt: 0, payload: 0 };
    assert.deepEqual({ ...first, ...alike }, { ...second, ...alike });
    assert.deepEqual(JSON.parse(first!.payload), payload);
    const outcome = { kind: "completed", result: "1" } as const;
    assert.deepEqual(await settleRuns(world.store, [{ run: first!, outcome }]), ["accepted"]);
  });

  it("has the defaults of a node for what is left out", async (t) => {
    const { world, session } = await opened(t);
    const { rows } = await session.query<{ id: JobId }>("SELECT baton.submit('mail') AS id");
    const job = (await world.store.jobs.get(rows[0]!.id))!;
    const { jobs, retry } = loadSettings({ environment: {}, cwd: "/" }).settings;
    assert.equal(job.maxAttempts, retry.attempts);
    assert.equal(job.timeoutMs, jobs.timeoutMs);
    assert.deepEqual([job.queue, job.priority, job.payload, job.status], ["default", 0, "null", "queued"]);
    assert.deepEqual([job.owner, job.ownerEpoch, job.leaderEpoch], ["sql", 0, 0]);
    assert.equal(job.idempotencyKey, null);
    const [uuid] = [parseJobId(job.id)!.uuid];
    assert.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab]/);
    const made = Number.parseInt(uuid.replace("-", "").slice(0, 12), 16);
    assert.ok(Math.abs(made - job.createdAt) <= 1_000, "the uuid begins with the time");
  });

  it("has the options of its task, as the node that started last had them", async (t) => {
    const { world, session } = await opened(t);
    const as = (maxAttempts: number, timeoutMs: number | null) => {
      return [{ task: "charge", queue: "payments", priority: 7, maxAttempts, timeoutMs }];
    };
    const look = async (options: object) => {
      const { queue, priority, maxAttempts, timeoutMs } = (await world.store.jobs.get(
        await submit(session, "charge", 1, options),
      ))!;
      return [queue, priority, maxAttempts, timeoutMs];
    };
    await world.store.noteTasks!(as(5, 15_000));
    assert.deepEqual(await look({}), ["payments", 7, 5, 15_000]);
    await world.store.noteTasks!(as(8, null));
    await world.store.noteTasks!([]);
    assert.ok((await world.store.notedTasks!()).includes("charge"));
    assert.deepEqual(await look({}), ["payments", 7, 8, null]);
    const own = { queue: "other", priority: 0, max_attempts: 1, timeout_ms: 5 };
    assert.deepEqual(await look(own), ["other", 0, 1, 5]);
  });

  it("is refused for a task that no node has had, unless that is allowed", async (t) => {
    const { world, session } = await opened(t);
    for (const attempt of [submit(session, "recipt"), submitMany(session, [{ task: "recipt" }])]) {
      const error = await refusal(attempt);
      assert.equal(error.code, "22023");
      assert.match(error.column!, /task$/);
      assert.match(
        error.message,
        /^no node of this cluster has had the task "recipt" so far; did you mean receipt\?; start one that has it, or give "(\[0\]\.)?allow_unknown": true$/,
      );
    }
    assert.match((await refusal(submit(session, "zzz"))).message, /so far; start one/);
    assert.equal(await world.count(), 0);
    const id = await submit(session, "recipt", 1, { allow_unknown: true });
    const { queue, priority, maxAttempts, timeoutMs } = (await world.store.jobs.get(id))!;
    assert.deepEqual([queue, priority, maxAttempts, timeoutMs], ["default", 0, 3, 3_600_000]);
  });

  it("waits for its time, given as a delay or as an instant", async (t) => {
    const { world, session } = await opened(t);
    const answers = await submitMany(session, [
      { task: "later", delay_ms: 60_000 },
      { task: "later", run_at: "2100-01-31T09:00:00.5+02:00" },
      { task: "later", run_at: "1999-12-31T23:59:59Z" },
      { task: "later", delay_ms: 0 },
    ]);
    assert.deepEqual(column(answers, "status"), ["scheduled", "scheduled", "queued", "queued"]);
    const [delayed, instant, past, now] = await Promise.all(
      answers.map(async ({ job_id }) => (await world.store.jobs.get(job_id))!),
    );
    assert.equal(delayed!.runAt, delayed!.createdAt + 60_000);
    assert.equal(instant!.runAt, Date.parse("2100-01-31T07:00:00.500Z"));
    assert.equal(past!.runAt, Date.parse("1999-12-31T23:59:59Z"));
    assert.equal(now!.runAt, now!.createdAt);
    assert.deepEqual(
      [delayed, instant, past, now].map((job) => job!.status),
      answers.map(({ status }) => status),
    );
    const due = await world.claim("later");
    assert.deepEqual(column(due, "id"), [past!.id, now!.id]);
  });

  it("takes a time out of a column as PostgreSQL writes it into JSON", async (t) => {
    const { world, session } = await opened(t);
    await session.query("SET TimeZone = 'Asia/Kolkata'");
    const { rows } = await session.query<{ id: JobId; due: Date }>(
      `SELECT baton.submit('later', 'null', jsonb_build_object('run_at', due)) AS id, due
       FROM (SELECT date_trunc('milliseconds', now()) + interval '1 hour' AS due) AS d`,
    );
    const job = await world.store.jobs.get(rows[0]!.id);
    assert.equal(job!.runAt, rows[0]!.due.getTime());
  });

  it("may be none at all, which is what jsonb_agg makes of no rows", async (t) => {
    const { world, session } = await opened(t);
    assert.deepEqual(await submitMany(session, []), []);
    const none = "SELECT * FROM baton.submit_many((SELECT jsonb_agg(1) WHERE false))";
    assert.deepEqual((await session.query(none)).rows, []);
    assert.equal(await world.count(), 0);
  });

  it("lives in the schema of its cluster, also when the database has several", async (t) => {
    const world = await open(t, "other_jobs");
    const session = await world.session();
    const { rows } = await session.query<{ id: JobId }>("SELECT other_jobs.submit('mail', '1') AS id");
    assert.deepEqual(column(await world.claim("mail"), "id"), [rows[0]!.id]);
    await assert.rejects(submit(session, "mail"), { code: "3F000" });
  });
});

describe("a transaction that submits", () => {
  for (const level of ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]) {
    it(`may be ${level}`, async (t) => {
      const { world, session } = await opened(t);
      await session.query(`BEGIN ISOLATION LEVEL ${level}`);
      const key = { idempotency_key: "twice" };
      const id = await submit(session, "mail", 1, key);
      assert.equal(await submit(session, "mail", 1, key), id);
      const [again] = await submitMany(session, [{ task: "mail", payload: 1, ...key }]);
      assert.deepEqual(again, { job_id: id, status: "queued", existed: true });
      await session.query("COMMIT");
      assert.deepEqual(column(await world.claim("mail"), "payload"), ["1"]);
    });
  }

  it("holds nobody up: others submit the same task meanwhile, by SQL or through a node", async (t) => {
    const world = await open(t);
    const [ours, theirs] = [await world.session(), await world.session()];
    await submit(theirs, "mail");
    await ours.query("BEGIN");
    await submit(ours, "mail");
    await theirs.query("SET lock_timeout = '1s'");
    await submit(theirs, "mail");
    await submitMany(theirs, [{ task: "mail", idempotency_key: "a" }, { task: "mail" }]);
    await normal(world, "mail");
    assert.equal((await world.claim("mail")).length, 5);
    await ours.query("COMMIT");
    assert.equal((await world.claim("mail")).length, 1);
  });

  it("with the first job ever of its kind lets another first one wait for its end", async (t) => {
    const world = await open(t);
    for (const end of ["COMMIT", "ROLLBACK"]) {
      const task = `first-${end}`;
      const [ours, theirs] = [await world.session(), await world.session()];
      await ours.query("BEGIN");
      await submit(ours, task);
      const other = submit(theirs, task);
      await world.waiting();
      await ours.query(end);
      await other;
      assert.equal((await world.claim(task)).length, end === "COMMIT" ? 2 : 1);
    }
    const { rows } = await (await world.session()).query("SELECT task FROM baton.kind");
    assert.equal(rows.length, 2);
  });
});

async function normal(world: SubmitWorld, task: string): Promise<JobId> {
  const job = newJob({ task, payload: "1" });
  await world.store.jobs.submit([job], { node: "node-a" as NodeName, ownerEpoch: 1, leaderEpoch: 1 });
  return job.id;
}

describe("an idempotency key in SQL", () => {
  it("makes one job of twenty transactions at the same time", async (t) => {
    const world = await open(t);
    const sessions = await Promise.all(Array.from({ length: 20 }, () => world.session()));
    const answers = await Promise.all(
      sessions.map(async (session) => {
        await session.query("BEGIN");
        const [answer] = await submitMany(session, [{ task: "mail", payload: 1, idempotency_key: "once" }]);
        await session.query("COMMIT");
        return answer!;
      }),
    );
    assert.equal(new Set(answers.map(({ job_id }) => job_id)).size, 1);
    assert.equal(answers.filter(({ existed }) => !existed).length, 1);
    assert.deepEqual([await world.count("job"), await world.count("live")], [1, 1]);
  });

  it("waits for an open transaction that uses it: its job after a commit, one of our own after a rollback", async (t) => {
    const world = await open(t);
    await normal(world, "mail");
    const [ours, theirs] = [await world.session(), await world.session()];
    for (const end of ["COMMIT", "ROLLBACK"]) {
      const options = { idempotency_key: `key-${end}` };
      await theirs.query("BEGIN");
      const first = await submit(theirs, "mail", 1, options);
      const second = submit(ours, "mail", 1, options);
      await world.waiting();
      await theirs.query(end);
      assert.equal((await second) === first, end === "COMMIT");
      assert.ok(await world.store.jobs.get(await second));
    }
  });

  it("is the same key for a node, and answers with the state of its job", async (t) => {
    const { world, session } = await opened(t);
    const again = async () =>
      (await submitMany(session, [{ task: "mail", payload: 1, idempotency_key: "k" }]))[0]!;
    const id = await submit(session, "mail", 1, { idempotency_key: "k" });
    assert.deepEqual(await again(), { job_id: id, status: "queued", existed: true });
    const [run] = await world.claim("mail");
    assert.equal((await again()).status, "processing");
    await settleRuns(world.store, [{ run: run!, outcome: { kind: "completed", result: "1" } }]);
    assert.equal((await again()).status, "completed");
    await world.store.jobs.remove(id);
    assert.equal((await again()).existed, false);
  });

  it("twice in one call makes one job", async (t) => {
    const { world, session } = await opened(t);
    const answers = await submitMany(session, [
      { task: "mail", payload: 1, idempotency_key: "twin" },
      { task: "mail", payload: 2 },
      { task: "mail", payload: 1, idempotency_key: "twin" },
    ]);
    assert.equal(answers[2]!.job_id, answers[0]!.job_id);
    assert.deepEqual(column(answers, "existed"), [false, false, true]);
    assert.deepEqual(column(await world.claim("mail"), "payload"), ["1", "2"]);
  });

  it("with another payload is refused with the first job's id, and nothing of the call is stored", async (t) => {
    const { world, session } = await opened(t);
    const key = { idempotency_key: "k" };
    const id = await submit(session, "mail", { a: 1, b: [1] }, key);
    assert.equal(await submit(session, "mail", { b: [1.0], a: 1 }, key), id);
    const one = await refusal(submit(session, "mail", { a: 2 }, key));
    assert.deepEqual([one.code, one.column, one.detail], ["BT002", "idempotency_key", id]);
    assert.match(one.message, /^idempotency key "k" of task mail belongs to job sql-/);
    const many = await refusal(submitMany(session, [{ task: "mail" }, { task: "mail", payload: 2, ...key }]));
    assert.deepEqual([many.code, many.column, many.detail], ["BT002", "[1].idempotency_key", id]);
    const other = await submitMany(session, [{ task: "other", payload: 2, ...key }]);
    assert.equal(other[0]!.existed, false, "a key belongs to one task");
    assert.equal(await world.count(), 2);
  });

  it("can be used again after a failure, unless the caller says never", async (t) => {
    const { world, session } = await opened(t);
    const key = { idempotency_key: "k" };
    const id = await submit(session, "mail", 1, key);
    const [run] = await world.claim("mail");
    const error = { code: "ERROR", message: "no" };
    await settleRuns(world.store, [{ run: run!, outcome: { kind: "failed", error, spends: "failure" } }]);
    const never = await submitMany(session, [{ task: "mail", payload: 1, ...key, key_reuse: "never" }]);
    assert.deepEqual(never, [{ job_id: id, status: "failed", existed: true }]);
    const twice = { task: "mail", payload: 2, ...key, key_reuse: "after_failure" };
    const again = await submitMany(session, [twice, { task: "mail" }, twice]);
    assert.deepEqual(column(again, "existed"), [false, false, true]);
    assert.equal(again[2]!.job_id, again[0]!.job_id);
    assert.equal(await world.store.jobs.retry(id), "superseded");
    assert.equal((await world.claim("mail")).length, 2);
  });

  it("of a failed job makes one job of twenty transactions at the same time", async (t) => {
    const world = await open(t);
    const first = await world.session();
    await submit(first, "mail", 1, { idempotency_key: "k" });
    const [run] = await world.claim("mail");
    const error = { code: "ERROR", message: "no" };
    await settleRuns(world.store, [{ run: run!, outcome: { kind: "failed", error, spends: "failure" } }]);
    const sessions = await Promise.all(Array.from({ length: 20 }, () => world.session()));
    const ids = await Promise.all(
      sessions.map((session) => submit(session, "mail", 1, { idempotency_key: "k" })),
    );
    assert.equal(new Set(ids).size, 1);
    assert.notEqual(ids[0], run!.id);
    assert.equal(await world.count(), 1);
  });

  it("does not let two calls with the same keys wait for each other crosswise", async (t) => {
    const world = await open(t);
    await normal(world, "mail");
    const [holder, ours, theirs] = [await world.session(), await world.session(), await world.session()];
    const keyed = (...keys: string[]) => keys.map((key) => ({ task: "mail", idempotency_key: key }));
    await holder.query("BEGIN");
    await submitMany(holder, keyed("m"));
    // Taken as they stand, both would have one of a and b, wait at m, and then for each other.
    const answers = Promise.all([
      submitMany(ours, keyed("a", "m", "b")),
      submitMany(theirs, keyed("b", "m", "a")),
    ]);
    await world.waiting(2);
    await holder.query("ROLLBACK");
    const [first, second] = (await answers).map((batch) => batch.map(({ job_id }) => job_id));
    assert.deepEqual(second!.toReversed(), first);
    assert.equal(await world.count(), 4);
  });
});

describe("a submit in SQL refuses", () => {
  const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels)) as unknown;
  const wrong: [what: object | string | number, column: string | undefined, message: RegExp][] = [
    [{}, "[0].task", /"\[0\]\.task" is missing/],
    [7, undefined, /\[0\] must be an object/],
    [{ task: null }, "[0].task", /must be a name .*, not null; leave it out/],
    [{ task: 7 }, "[0].task", /must be a name .*, not 7$/],
    [{ task: "no spaces" }, "[0].task", /1 to 128 letters, digits .*, not "no spaces"/],
    [{ task: "a\n" }, "[0].task", /must be a name/],
    [{ task: "ä" }, "[0].task", /must be a name/],
    [{ task: "x".repeat(129) }, "[0].task", /must be a name/],
    [{ task: "a", queue: "-q" }, "[0].queue", /begins and ends/],
    [{ task: "a", queue: "" }, "[0].queue", /must be a name/],
    [{ task: "a", birthplace: "a/b" }, "[0].birthplace", /1 to 63/],
    [{ task: "a", birthplace: "x".repeat(64) }, "[0].birthplace", /1 to 63/],
    [{ task: "a", priority: "1" }, "[0].priority", /whole number from -100 to 100, not "1"/],
    [{ task: "a", priority: 1.5 }, "[0].priority", /whole number/],
    [{ task: "a", priority: PRIORITY_MAX + 1 }, "[0].priority", /not 101/],
    [{ task: "a", priority: PRIORITY_MIN - 1 }, "[0].priority", /not -101/],
    [{ task: "a", priority: 1e300 }, "[0].priority", /not 1000/],
    [{ task: "a", max_attempts: 0 }, "[0].max_attempts", /from 1 to 1000, not 0/],
    [{ task: "a", max_attempts: ATTEMPTS_MAX + 1 }, "[0].max_attempts", /from 1 to 1000/],
    [{ task: "a", timeout_ms: 0 }, "[0].timeout_ms", /from 1 to 2147483647/],
    [{ task: "a", timeout_ms: TIMEOUT_MS_MAX + 1 }, "[0].timeout_ms", /from 1 to 2147483647/],
    [{ task: "a", timeout_ms: null }, "[0].timeout_ms", /not null; leave it out instead \(jsonb_strip_nulls/],
    [{ task: "a", delay_ms: -1 }, "[0].delay_ms", /from 0 to 31622400000, not -1/],
    [{ task: "a", delay_ms: DELAY_MS_MAX + 1 }, "[0].delay_ms", /from 0 to/],
    [{ task: "a", run_at: 1_700_000_000 }, "[0].run_at", /ISO-8601 time .* with its zone/],
    [{ task: "a", run_at: "tomorrow" }, "[0].run_at", /not "tomorrow"/],
    [{ task: "a", run_at: "2026-01-31T09:00:00" }, "[0].run_at", /with its zone/],
    [{ task: "a", run_at: "2026-02-30T09:00:00Z" }, "[0].run_at", /with its zone/],
    [{ task: "a", run_at: "2026-01-31T24:00:00Z" }, "[0].run_at", /with its zone/],
    [{ task: "a", run_at: "1969-12-31T23:59:59Z" }, "[0].run_at", /from 1970 on/],
    [{ task: "a", run_at: "2026-01-31T09:00:00+99:00" }, "[0].run_at", /with its zone/],
    [
      { task: "a", run_at: "2026-01-31T09:00:00Z", delay_ms: 0 },
      "[0].delay_ms",
      /give .*run_at" or .*, not both/,
    ],
    [{ task: "a", idempotency_key: "" }, "[0].idempotency_key", /1 to 255 characters/],
    [{ task: "a", idempotency_key: null }, "[0].idempotency_key", /not null/],
    [{ task: "a", idempotency_key: "x".repeat(256) }, "[0].idempotency_key", /1 to 255/],
    [{ task: "a", idempotency_key: "a\tb" }, "[0].idempotency_key", /without control characters/],
    [{ task: "a", idempotency_key: "a\u0085b" }, "[0].idempotency_key", /without control characters/],
    [{ task: "a", idempotency_key: "k", key_reuse: "always" }, "[0].key_reuse", /after_failure or never/],
    [{ task: "a", idempotency_key: "k", key_reuse: 1 }, "[0].key_reuse", /after_failure or never, not 1/],
    [
      { task: "a", key_reuse: "never" },
      "[0].key_reuse",
      /is about an ".*idempotency_key"; give that as well/,
    ],
    [{ task: "a", allow_unknown: 1 }, "[0].allow_unknown", /true or false, not 1/],
    [{ task: "a", payload: nested(65) }, "[0].payload", /at most 64 levels/],
    [{ task: "a", payload: { a: nested(64) } }, "[0].payload", /at most 64 levels/],
    [{ task: "a", prioritty: 1 }, "[0].prioritty", /is not a known field; known are task, payload/],
    [{ task: "a", max_attempts: 1, id: "x" }, "[0].id", /not a known field/],
  ];

  it("every field that the API refuses, with its name and the remedy, and stores nothing of the call", async (t) => {
    const { world, session } = await opened(t);
    for (const [job, column, message] of wrong) {
      const error = await refusal(submitMany(session, [job, { task: "fine" }]));
      assert.equal(error.code, "22023", error.message);
      assert.equal(error.column, column, error.message);
      assert.match(error.message, message);
      assert.ok(error.message.length < 300, error.message);
    }
    assert.equal(await world.count(), 0);
  });

  it("nothing that the API takes at the edge", async (t) => {
    const { world, session } = await opened(t);
    const right = [
      { task: "x".repeat(128), queue: "q" },
      { task: "a.b_c:d/e-9", queue: "Z", birthplace: "x".repeat(63) },
      { task: "a", priority: PRIORITY_MAX },
      { task: "a", priority: PRIORITY_MIN },
      { task: "a", max_attempts: ATTEMPTS_MAX, timeout_ms: TIMEOUT_MS_MAX },
      { task: "a", max_attempts: 1, timeout_ms: 1 },
      { task: "a", delay_ms: DELAY_MS_MAX },
      { task: "a", run_at: "2028-02-29T23:59:59.123456789-09:30" },
      { task: "a", idempotency_key: "🚀".repeat(IDEMPOTENCY_KEY_LENGTH_MAX) },
      { task: "a", payload: nested(64) },
      { task: "a", payload: { a: nested(63) } },
      { task: "a", payload: [nested(62), "[".repeat(100)] },
    ];
    for (const job of right) await submitMany(session, [job]);
    assert.equal(await world.count(), right.length);
  });

  it("exactly the names, times and keys that the API refuses", async (t) => {
    const { session } = await opened(t);
    const texts = [
      "",
      "a",
      "a-",
      "a b",
      "é",
      "a/b",
      "2026-01-31T09:00:00Z",
      "2026-01-31T09:00Z",
      "2026-1-31T09:00:00Z",
    ];
    texts.push(
      "2027-02-29T00:00:00Z",
      "2026-01-31t09:00:00z",
      "2026-01-31T09:00:60Z",
      "2026-01-31T09:00:00+0200",
    );
    texts.push("x\u007f", "\u00a0", "x\n", "0".repeat(255), "2026-01-31T09:00:00.1+14:00");
    for (const text of texts) {
      for (const [field, schema] of [
        ["queue", Name],
        ["run_at", Instant],
        ["idempotency_key", IdempotencyKey],
      ] as const) {
        const taken = await submitMany(session, [{ task: "a", [field]: text }]).then(
          () => true,
          () => false,
        );
        assert.equal(taken, schema.safeParse(text).success, `${field} ${JSON.stringify(text)}`);
      }
    }
  });

  it("the same through submit, whose fields have no index", async (t) => {
    const { world, session } = await opened(t);
    const task = await refusal(submit(session, "no good"));
    assert.deepEqual([task.code, task.column], ["22023", "task"]);
    const option = await refusal(submit(session, "a", 1, { delay: 1 }));
    assert.match(option.message, /^"delay" is not a known field/);
    const twice = await refusal(submit(session, "a", 1, { payload: 1 }));
    assert.match(twice.message, /"options" must be an object without "task" and "payload"/);
    const list = await refusal(submit(session, "a", 1, []));
    assert.match(list.message, /"options" must be an object/);
    const nothing = await refusal(session.query("SELECT baton.submit(NULL)"));
    assert.match(nothing.message, /"task" must be a name .*, not null/);
    await session.query("SELECT baton.submit('a', NULL, NULL)");
    assert.equal((await world.claim("a"))[0]!.payload, "null");
  });

  it("what is not an array, and more than POST /jobs takes", async (t) => {
    const { world, session } = await opened(t);
    assert.match((await refusal(submitMany(session, { task: "a" }))).message, /"jobs" must be an array/);
    const many = await refusal(
      submitMany(
        session,
        Array.from({ length: 10_001 }, () => ({ task: "a" })),
      ),
    );
    assert.match(many.message, /at most 10000 items, not 10001/);
    assert.match(
      (await refusal(submitMany(session, [{ task: "a" }, { task: "" }]))).message,
      /^"\[1\]\.task"/,
    );
    assert.equal(await world.count(), 0);
  });

  it("a NUL, which jsonb has no place for, and takes all other text", async (t) => {
    const { world, session } = await opened(t);
    assert.equal((await refusal(submit(session, "a", "\0"))).code, "22P05");
    assert.equal((await refusal(submit(session, "a", 1, { idempotency_key: "\0" }))).code, "22P05");
    const texts = ["\u0001\u001f\u007f", "\u2028 \ufeff", "𝒳🏳️‍🌈", "' \\ \" $$ $1 ${}"];
    for (const text of texts) await submit(session, "a", { [text]: text });
    assert.deepEqual(
      (await world.claim("a")).map(({ payload }) => JSON.parse(payload) as unknown),
      texts.map((text) => ({ [text]: text })),
    );
  });
});

describe("the commit of a submit in SQL", () => {
  /** Channels of a node on the same database. `heard` counts wake-ups; `heardAll` tells when all so far have come. */
  async function listening(t: TestContext, world: SubmitWorld) {
    const { url, schema } = world;
    const channels = await openChannels({
      kind: "postgres",
      url,
      schema,
      clock: systemClock,
      random: systemRandom,
    });
    await channels.start();
    atEnd(t, () => channels.stop());
    let heard = 0;
    channels.subscribe(topics.jobsReady, () => void heard++);
    const fences = new Map<string, () => void>();
    channels.subscribe("fence", ({ key }) => fences.get(key)?.());
    // Notifications arrive in the order of the commits: what is heard behind a fence came behind it.
    const session = await world.session();
    const short = createHash("sha256").update(schema).digest("hex").slice(0, 32);
    const channel = schema.length <= 57 ? `${schema}.hints` : `hints.${short}`;
    return async (): Promise<number> => {
      const key = systemRandom.uuid();
      const passed = new Promise<void>((resolve) => fences.set(key, resolve));
      await session.query("SELECT pg_notify($1, $2)", [channel, `fence:1:[["fence","${key}",null]]`]);
      await passed;
      return heard;
    };
  }

  for (const schema of ["baton", "s".repeat(63)]) {
    it(`wakes the workers of a cluster in schema ${schema}, once for each transaction`, async (t) => {
      const world = await open(t, schema);
      const heardAll = await listening(t, world);
      const session = await world.session();
      const one = `SELECT ${schema}.submit('mail')`;
      await session.query("BEGIN");
      for (let n = 0; n < 3; n++) await session.query(one);
      assert.equal(await heardAll(), 0, "before the commit");
      await session.query("COMMIT");
      assert.equal(await heardAll(), 1, "after the commit");
      await session.query("BEGIN");
      await session.query(one);
      await session.query("ROLLBACK");
      assert.equal(await heardAll(), 1, "after a rollback");
      await session.query(one);
      assert.equal(await heardAll(), 2, "after a submit without a transaction");
    });
  }

  it("wakes nobody for jobs that are not due, or were there already", async (t) => {
    const world = await open(t);
    const heardAll = await listening(t, world);
    const session = await world.session();
    await submit(session, "mail", 1, { delay_ms: 60_000, idempotency_key: "a" });
    await submit(session, "mail", 1, { run_at: "2100-01-01T00:00:00Z" });
    await submit(session, "mail", 1, { idempotency_key: "a" });
    assert.equal(await heardAll(), 0);
    await submitMany(session, [{ task: "mail", delay_ms: 60_000 }, { task: "mail" }]);
    assert.equal(await heardAll(), 1);
  });
});

describe("docs/transactions.md", () => {
  it("shows SQL that works", async (t) => {
    const { world, session } = await opened(t);
    await session.query("CREATE TABLE orders (id int, state text)");
    await session.query("INSERT INTO orders VALUES (1, 'cart'), (2, 'cart'), (3, 'placed')");
    await session.query("DROP ROLE IF EXISTS shop");
    await session.query("CREATE ROLE shop");
    t.after(() => world.server.query("DROP ROLE IF EXISTS shop"));
    const path = "docs/transactions.md";
    const text = readFileSync(new URL(`../../../../../${path}`, import.meta.url), "utf8");
    const shown = blocksOf({ path, text }).filter(({ language }) => language === "sql");
    assert.equal(shown.length, 2);
    for (const block of shown) await session.query(block.text);
    await session.query("DROP OWNED BY shop");
    const payloads = (await world.claim("receipt")).map(({ payload }) => JSON.parse(payload) as unknown);
    assert.deepEqual(payloads, [{ id: 7 }, { id: 1 }, { id: 2 }]);
    assert.equal(await world.count(), 5, "two more are for later");
  });
});

describe("who may submit in SQL", () => {
  it("needs two grants, and can then do nothing else", async (t) => {
    const world = await open(t);
    const admin = await world.session();
    await admin.query("DROP ROLE IF EXISTS shop");
    await admin.query("CREATE ROLE shop LOGIN");
    t.after(() => world.server.query("DROP ROLE IF EXISTS shop"));
    const shop = await world.session("shop");
    await assert.rejects(submit(shop, "mail"), { code: "42501" });
    await admin.query("GRANT USAGE ON SCHEMA baton TO shop");
    await assert.rejects(submit(shop, "mail"), { code: "42501" });
    await admin.query(
      "GRANT EXECUTE ON FUNCTION baton.submit(text, jsonb, jsonb), baton.submit_many(jsonb) TO shop",
    );
    const id = await submit(shop, "mail", { secret: 1 });
    await submitMany(shop, [{ task: "mail" }]);
    assert.equal((await world.claim("mail"))[0]!.id, id);
    for (const forbidden of [
      "SELECT payload FROM baton.job",
      "DELETE FROM baton.live",
      "SELECT * FROM baton.submit_prepared('[]')",
    ])
      await assert.rejects(shop.query(forbidden), { code: "42501" }, forbidden);
    await admin.query("DROP OWNED BY shop");
  });

  it("cannot make the functions use things of their own", async (t) => {
    const { world, session } = await opened(t);
    await session.query(`
      CREATE SCHEMA evil;
      CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$SELECT 'epoch'::timestamptz$$;
      CREATE FUNCTION evil.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'reached'; END$$;
      CREATE FUNCTION evil.like_all(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
      CREATE OPERATOR evil.~ (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.like_all);
      SET search_path = evil, pg_catalog`);
    const id = await submit(session, "mail");
    assert.ok((await world.store.jobs.get(id))!.createdAt > 0);
    await assert.rejects(submit(session, "no good"), { code: "22023" });
  });
});

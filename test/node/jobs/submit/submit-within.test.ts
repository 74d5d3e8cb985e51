import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { type Client, Pool } from "pg";
import { z } from "zod";
import { type SubmitOptions, type SubmitRequest, Submitter } from "../../../../src/jobs/submit/submitter.ts";
import type { NodeName } from "../../../../src/core/ids.ts";
import type { Job } from "../../../../src/core/jobs/job.ts";
import { type AnyTask, defineTask } from "../../../../src/jobs/tasks/task.ts";
import { TaskRegistry } from "../../../../src/jobs/tasks/task-registry.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { systemRandom } from "../../../../src/platform/random.ts";
import { memoryStore } from "../../../support/memory-store.ts";
import type { Store } from "../../../../src/store/store.ts";
import { nodeHere } from "../../../support/node-here.ts";
import { submitWorlds } from "../../../support/submit-world.ts";

const open = submitWorlds();

const mail = defineTask({
  name: "mail",
  schema: z.object({ to: z.string() }),
  queue: "mails",
  priority: 5,
  retry: { attempts: 9 },
  timeout: "1s",
  run: () => {},
});

function submitterOf(store: Pick<Store, "jobs">) {
  const woken: true[] = [];
  const submitter = new Submitter(fakePlatform({ random: systemRandom }), {
    store,
    tasks: new TaskRegistry([mail] as AnyTask[]),
    author: () => ({ node: "node-a" as NodeName, ownerEpoch: 4, leaderEpoch: 6 }),
    defaults: { maxAttempts: 3, timeoutMs: 3_600_000 },
    wakes: () => false,
    onStored: () => woken.push(true),
  });
  const one = async (request: SubmitRequest, options?: SubmitOptions) =>
    (await submitter.submit([request], options))[0]!;
  return { submitter, one, woken };
}

/** In a transaction of the client that is committed, or rolled back with the error. */
async function committed<T>(client: Client, work: () => Promise<T>): Promise<T> {
  await client.query("BEGIN");
  try {
    const answer = await work();
    await client.query("COMMIT");
    return answer;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  }
}

/** A database, a client of the caller on it, and a submitter that is given the client. */
async function within(t: TestContext) {
  const world = await open(t);
  return { world, client: await world.session(), ...submitterOf(world.store) };
}

describe("submitting with a client of the caller", () => {
  it("stores the job with the caller's transaction, or not at all", async (t) => {
    const { world, client, one, woken } = await within(t);
    await client.query("CREATE TABLE orders (id int)");
    for (const end of ["ROLLBACK", "COMMIT"]) {
      await client.query("BEGIN");
      await client.query("INSERT INTO orders VALUES (1)");
      const answer = await one({ task: "mail", payload: { to: "ada" } }, { client });
      assert.deepEqual([answer.status, answer.existed], ["queued", false]);
      assert.equal(await world.store.jobs.get(answer.id), null, "nobody sees it before the commit");
      await client.query(end);
      assert.equal((await world.store.jobs.get(answer.id)) !== null, end === "COMMIT");
    }
    assert.equal(await world.count(), 1);
    assert.deepEqual(woken, [], "the commit wakes workers, not the submit");
  });

  it("stores what it would store by itself, whatever the fields", async (t) => {
    const { world, client, submitter } = await within(t);
    const name = fc.constantFrom("a", "b.c", "d/e");
    const request = fc.record(
      {
        task: name,
        payload: fc.jsonValue({ maxDepth: 4 }).map((value) => [value, "\0 \ud800 ☂"]),
        queue: name,
        priority: fc.integer({ min: -100, max: 100 }),
        maxAttempts: fc.integer({ min: 1, max: 1_000 }),
        timeoutMs: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
        runAt: fc.integer({ min: 0, max: 8.64e15 }),
      },
      { requiredKeys: ["task"] },
    );
    let n = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(request, { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        async (requests, keyed) => {
          const batch = (by: string) =>
            requests.map((each, at) => (keyed ? { ...each, idempotencyKey: `${by} ${n} ${at} ☂` } : each));
          const own = await submitter.submit(batch("own"));
          const within = await committed(client, () => submitter.submit(batch("within"), { client }));
          n++;
          const jobs = async (answers: typeof own) =>
            Promise.all(answers.map(async ({ id }) => (await world.store.jobs.get(id))!));
          const rest = (job: Job, at: number) => ({
            ...job,
            id: 0,
            createdAt: 0,
            updatedAt: 0,
            runAt: requests[at]!.runAt === undefined ? job.runAt - job.createdAt : job.runAt,
            idempotencyKey: job.idempotencyKey?.replace(/^\w+/, ""),
          });
          assert.deepEqual((await jobs(within)).map(rest), (await jobs(own)).map(rest));
          const answered = ({ status, existed }: (typeof own)[number]) => ({ status, existed });
          assert.deepEqual(within.map(answered), own.map(answered));
        },
      ),
      { numRuns: 40 },
    );
  });

  it("checks the payload and fills in the options of the task, as always", async (t) => {
    const { world, client, one, submitter } = await within(t);
    const bad = { task: "mail", payload: { to: 7 } };
    await assert.rejects(one(bad, { client }), { code: "BAD_PAYLOAD", details: { field: "payload.to" } });
    await assert.rejects(submitter.submit([{ task: "x" }, bad], { client }), {
      details: { field: "[1].payload.to" },
    });
    await assert.rejects(one({ task: "x", priority: 101 }, { client }), { details: { field: "priority" } });
    assert.equal(await world.count(), 0);
    const later = { task: "mail", payload: { to: "ada" }, delayMs: 60_000 };
    const { id } = await committed(client, () => one(later, { client }));
    const job = (await world.store.jobs.get(id))!;
    assert.deepEqual([job.queue, job.priority, job.maxAttempts, job.timeoutMs], ["mails", 5, 9, 1_000]);
    assert.deepEqual([job.status, job.runAt - job.createdAt], ["scheduled", 60_000]);
    assert.deepEqual([job.owner, job.ownerEpoch, job.leaderEpoch], ["node-a", 4, 6]);
    assert.deepEqual(await submitter.submit([], { client }), []);
  });

  it("stores a thousand in one call, in their order", async (t) => {
    const { world, client, submitter } = await within(t);
    const requests = Array.from({ length: 1_000 }, (_, n) => ({ task: "work", payload: n }));
    await client.query("BEGIN");
    const answers = await submitter.submit(requests, { client });
    await client.query("COMMIT");
    const claimed = await world.claim("work");
    const ids = claimed.map(({ id }) => id);
    const expected = answers.map(({ id }) => id);
    assert.deepEqual(ids, expected);
    const payloads = claimed.map(({ payload }) => payload);
    const wanted = requests.map(({ payload }) => String(payload));
    assert.deepEqual(payloads, wanted);
  });

  it("holds nobody up, not even with the first job ever of its kind", async (t) => {
    const world = await open(t);
    const [ours, theirs] = [await world.session(), await world.session()];
    const { one } = submitterOf(world.store);
    await ours.query("BEGIN");
    await one({ task: "brand-new" }, { client: ours });
    await theirs.query("SET lock_timeout = '1s'");
    await theirs.query("SELECT baton.submit('brand-new')");
    await committed(theirs, () => one({ task: "brand-new" }, { client: theirs }));
    await one({ task: "brand-new" });
    assert.equal((await world.claim("brand-new")).length, 3);
    await ours.query("COMMIT");
    assert.equal((await world.claim("brand-new")).length, 1);
  });

  // Much less than the deadline of a statement, which would end the wait as well.
  const soon = { timeout: 8_000 };
  it("does not wait for a kind that the same transaction has made by SQL", soon, async (t) => {
    const { world, client, one } = await within(t);
    await client.query("BEGIN");
    await client.query("SELECT baton.submit('brand-new')");
    await one({ task: "brand-new" }, { client });
    await client.query("COMMIT");
    assert.equal((await world.claim("brand-new")).length, 2);
  });

  it("answers the job of an idempotency key that is in use, by whatever way it came", async (t) => {
    const { client, one } = await within(t);
    const request = { task: "work", idempotencyKey: "order-1" };
    const submitting = () => committed(client, () => one(request, { client }));
    const first = await submitting();
    assert.deepEqual(await one(request), { ...first, existed: true });
    assert.deepEqual(await submitting(), { ...first, existed: true });
    const { rows } = await client.query(
      "SELECT baton.submit('work', 'null', '{\"idempotency_key\": \"order-1\"}') AS id",
    );
    assert.deepEqual(rows, [{ id: first.id }]);
  });

  it("refuses the key of a job with another payload, and says of which place and which job", async (t) => {
    const { world, client, one, submitter } = await within(t);
    const request = { task: "work", payload: { a: "\0", b: 1 }, idempotencyKey: "order-1" };
    const { id } = await committed(client, () => one(request, { client }));
    assert.equal((await committed(client, () => one(request, { client }))).id, id);
    const conflict = (field: string) => ({
      code: "IDEMPOTENCY_CONFLICT",
      details: { field, job_id: id },
      message: new RegExp(
        `^${field.replaceAll(/[[\].]/g, "\\$&")} "order-1" of task work belongs to job ${id}`,
      ),
    });
    const other = { ...request, payload: 2 };
    const submitting = committed(client, () => one(other, { client }));
    await assert.rejects(submitting, conflict("idempotency_key"));
    await assert.rejects(one(other), conflict("idempotency_key"));
    for (const options of [{ client }, { client: undefined }]) {
      const list = () => submitter.submit([{ task: "work" }, { task: "work" }, other], options);
      await assert.rejects(
        options.client ? committed(client, list) : list(),
        conflict("[2].idempotency_key"),
      );
    }
    assert.equal(await world.count(), 1);
  });

  it("takes anything that passes a text and values to the database", async (t) => {
    const world = await open(t);
    const session = await world.session();
    const { one } = submitterOf(world.store);
    const texts: string[] = [];
    const client = {
      query: async (text: string, values: unknown[]) => {
        texts.push(text);
        const { rows } = await session.query(text, values);
        return { rows };
      },
    };
    const { id } = await committed(session, () => one({ task: "work" }, { client }));
    assert.ok(await world.store.jobs.get(id));
    assert.equal(texts.length, 2, "one more to see that a transaction is open");
  });

  it("passes on what the database says of the transaction, so that the caller can try again", async (t) => {
    const { client, one } = await within(t);
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    await client.query("SELECT 1");
    const request = { task: "work", idempotencyKey: "taken" };
    await one(request);
    await assert.rejects(one(request, { client }), { code: "40001" });
    await assert.rejects(one(request, { client }), { code: "25P02" });
    await client.query("ROLLBACK");
  });
});

describe("a client that cannot be right is refused", () => {
  const client = { field: "client" };

  it("when the store is embedded", async () => {
    const store = memoryStore({ clock: new ManualClock() });
    const { one } = submitterOf(store);
    const query = () => Promise.resolve({ rows: [] });
    await assert.rejects(one({ task: "work" }, { client: { query } }), {
      code: "BAD_REQUEST",
      details: client,
      message: /client needs a store in PostgreSQL/,
    });
    assert.equal((await store.jobs.list({ limit: 1 })).jobs.length, 0);
    await store.close();
  });

  it("when a node on such a store is given one", async (t) => {
    const node = await nodeHere(t);
    const query = () => Promise.resolve({ rows: [] });
    await assert.rejects(node.submit("work", null, { client: { query } }), {
      code: "BAD_REQUEST",
      details: client,
    });
    assert.equal((await node.services.jobs.list({ limit: 1 })).jobs.length, 0);
  });

  it("when it is a pool, which knows no transaction, or cannot query at all", async (t) => {
    const world = await open(t);
    const { one } = submitterOf(world.store);
    await using pool = Object.assign(new Pool({ connectionString: world.url }), {
      [Symbol.asyncDispose]: () => pool.end(),
    });
    await assert.rejects(one({ task: "work" }, { client: pool }), {
      code: "BAD_REQUEST",
      details: client,
      message: /is a pool; give the client from pool\.connect\(\)/,
    });
    for (const nothing of [null, {}, "postgres://"])
      await assert.rejects(one({ task: "work" }, { client: nothing as never }), {
        code: "BAD_REQUEST",
        message: /client must have a function query/,
      });
    assert.equal(await world.count(), 0);
  });

  it("when no transaction is open on it, and nothing is stored", async (t) => {
    const world = await open(t);
    const { one, submitter } = submitterOf(world.store);
    const session = await world.session();
    const refused = {
      code: "BAD_REQUEST",
      details: client,
      message:
        /^client has no open transaction, so the job would not be stored with your rows; begin one first/,
    };
    await assert.rejects(one({ task: "work" }, { client: session }), refused);
    await committed(session, () => one({ task: "work" }, { client: session }));
    await assert.rejects(
      submitter.submit([{ task: "work" }, { task: "work" }], { client: session }),
      refused,
    );
    assert.equal(await world.count(), 1);
  });

  it("when it is connected to a database without Baton, or with it in another schema", async (t) => {
    const world = await open(t);
    const other = await open(t, "elsewhere");
    const { one } = submitterOf(world.store);
    await assert.rejects(one({ task: "work" }, { client: await other.session() }), {
      code: "BAD_REQUEST",
      details: client,
      message: /without Baton in schema baton; connect it to the node's own/,
    });
  });

  it("when it is connected to the database of another cluster", async (t) => {
    const [world, other] = [await open(t), await open(t)];
    const { one } = submitterOf(world.store);
    await assert.rejects(one({ task: "work" }, { client: await other.session() }), {
      code: "BAD_REQUEST",
      details: client,
      message: /database of another cluster/,
    });
    assert.equal(await other.count(), 0);
  });

  it("when its role has not been granted the function", async (t) => {
    const world = await open(t);
    const admin = await world.session();
    await admin.query("DROP ROLE IF EXISTS guest");
    await admin.query("CREATE ROLE guest LOGIN");
    t.after(() => world.server.query("DROP ROLE IF EXISTS guest"));
    const { one } = submitterOf(world.store);
    const guest = await world.session("guest");
    const refused = {
      code: "BAD_REQUEST",
      details: client,
      message: /grant its role USAGE on schema baton and EXECUTE on function baton\.submit_prepared/,
    };
    await assert.rejects(one({ task: "work" }, { client: guest }), refused);
    await admin.query("GRANT USAGE ON SCHEMA baton TO guest");
    await assert.rejects(one({ task: "work" }, { client: guest }), refused);
    await admin.query("GRANT EXECUTE ON FUNCTION baton.submit_prepared TO guest");
    await committed(guest, () => one({ task: "work" }, { client: guest }));
    await admin.query("DROP OWNED BY guest");
    assert.equal(await world.count(), 1);
  });
});

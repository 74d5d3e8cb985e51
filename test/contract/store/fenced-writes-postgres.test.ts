/**
 * Fenced writes and grants at the same moment, over different connections: a write is committed before the next term is granted,
 * or not at all. Rows are held from outside, so that each stands still at the point where it matters.
 */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "pg";
import { DEFAULT_BUDGETS } from "../../../src/core/jobs/job.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import type { PostgresStore } from "../../../src/store/postgres/store.ts";
import type { ClaimedJob, ClaimRequest, Outcome } from "../../../src/store/store.ts";
import {
  AUTHOR,
  ERROR,
  HOUR_MS,
  lease,
  NODE,
  node,
  reportRuns,
  settleRuns,
} from "../../support/store-world.ts";
import { claimRequest, newJob } from "../../support/job-builders.ts";
import { waiting, withSession, withStores } from "./postgres-world.ts";

const refused = { code: "STALE_EPOCH" };
const COMPLETED: Outcome = { kind: "completed", result: "1" };
const RETRY: Outcome = { kind: "retry", error: ERROR, delayMs: 0 };

const request = (fence: Term, name: string, fields: Partial<ClaimRequest> = {}): ClaimRequest =>
  claimRequest({
    worker: name,
    lease: lease(`agent:${name}/1`),
    leaseMs: HOUR_MS,
    limit: 64,
    fence,
    ...fields,
  });

interface World {
  readonly url: string;
  /** Of the node that leads under `fence`. */
  readonly leader: PostgresStore;
  readonly fence: Term;
  /** Of somebody else. */
  readonly session: Client;
  /** Of the next term, to another node. */
  readonly grant: () => Promise<Term>;
  /** A job that runs, under the lease of an agent of this name. */
  readonly running: (name: string) => Promise<ClaimedJob>;
}

const withWorld = (proof: (world: World) => Promise<void>): Promise<void> =>
  withStores(2, async ([leader, next], url) => {
    const fence = await leader!.terms.grant("scheduler", { name: NODE, incarnation: "1" });
    const running = async (name: string): Promise<ClaimedJob> => {
      await leader!.jobs.submit([newJob()], AUTHOR);
      const { jobs } = await leader!.jobs.claim(request(fence, name));
      assert.equal(jobs.length, 1);
      return jobs[0]!;
    };
    const grant = () => next!.terms.grant("scheduler", { name: node("node-b"), incarnation: "2" });
    await withSession(url, (session) => proof({ url, leader: leader!, fence, session, grant, running }));
  });

/** A write under the term, and what holds it up once it has begun. */
interface Write {
  /** Tells what somebody else has to do in a transaction, so that the write cannot end before that does. */
  readonly prepare: (
    world: World,
  ) => Promise<{ readonly obstacle: string; readonly write: () => Promise<unknown> }>;
  /** What is there afterwards, if it was written. */
  readonly trace: string;
}

const settling = (outcome: Outcome, trace: string): Write => ({
  async prepare({ leader, fence, running }) {
    const run = await running("a");
    return {
      obstacle: "SELECT FROM baton.live FOR UPDATE",
      write: () => settleRuns(leader, [{ run, outcome }], fence),
    };
  },
  trace,
});

const WRITES: Readonly<Record<string, Write>> = {
  "a submit": {
    async prepare({ leader, fence }) {
      const job = newJob({ idempotencyKey: "k" });
      return {
        // Whether the key is free is not known before that transaction has ended.
        obstacle: `INSERT INTO baton.job (seq, id, created_at, birthplace, kind, author, max_attempts, priority, payload, idempotency_key, key_task)
          VALUES (0, gen_random_uuid(), 0, 0, 0, 0, 1, 0, '{}', 'k', 'work')`,
        write: () => leader.jobs.submit([job], AUTHOR, true, fence),
      };
    },
    trace: "SELECT FROM baton.live",
  },
  "a claim under a new lease": {
    async prepare({ leader, fence }) {
      await leader.jobs.submit([newJob()], AUTHOR);
      return {
        obstacle: "INSERT INTO baton.lease (name, expires_at) VALUES ('agent:a/1', 0)",
        write: () => leader.jobs.claim(request(fence, "a")),
      };
    },
    trace: "SELECT FROM baton.live WHERE started_at IS NOT NULL",
  },
  "a claim under a lease that is held": {
    async prepare({ leader, fence, running }) {
      const run = await running("a");
      await settleRuns(leader, [{ run, outcome: COMPLETED }]);
      await leader.jobs.submit([newJob()], AUTHOR);
      return {
        obstacle: "SELECT FROM baton.lease FOR UPDATE",
        write: () => leader.jobs.claim(request(fence, "a")),
      };
    },
    trace: "SELECT FROM baton.live WHERE started_at IS NOT NULL",
  },
  "a result": settling(COMPLETED, "SELECT FROM baton.done"),
  "a failure": settling(RETRY, "SELECT FROM baton.live WHERE started_at IS NULL"),
  "a report": {
    async prepare({ leader, fence, running }) {
      const run = await running("a");
      const report = { run, logs: [], progress: { value: 0.5, message: null } };
      return {
        obstacle: "SELECT FROM baton.live FOR UPDATE",
        write: () => reportRuns(leader, [report], fence),
      };
    },
    trace: "SELECT FROM baton.live WHERE progress IS NOT NULL",
  },
  "a renewal": {
    async prepare({ leader, fence, running }) {
      const run = await running("a");
      return {
        obstacle: "SELECT FROM baton.lease FOR UPDATE",
        write: () => leader.jobs.renew(run.lease, 100 * HOUR_MS, fence),
      };
    },
    trace: "SELECT FROM baton.lease WHERE expires_at > (extract(epoch FROM now()) + 360000 - 60) * 1000",
  },
  "a recovery": {
    async prepare({ leader, fence, running }) {
      await running("a");
      const ended = { by: "incarnations", incarnations: ["1"] } as const;
      return {
        obstacle: "SELECT FROM baton.live FOR UPDATE",
        write: () => leader.jobs.recover(ended, DEFAULT_BUDGETS, fence),
      };
    },
    trace: "SELECT FROM baton.live WHERE started_at IS NULL",
  },
  "word of an agent": {
    async prepare({ leader, fence }) {
      const agent = { name: "a", capabilities: [], version: null, labels: "{}", running: 0 };
      await leader.agents.seen([agent], fence);
      return {
        obstacle: "SELECT FROM baton.agent FOR UPDATE",
        write: () => leader.agents.seen([{ ...agent, running: 5 }], fence),
      };
    },
    trace: "SELECT FROM baton.agent WHERE running = 5",
  },
};

for (const [name, { prepare, trace }] of Object.entries(WRITES)) {
  void describe(`${name} under a term`, () => {
    void test("is in the way of a grant once it has begun, and committed before it", () =>
      withWorld(async (world) => {
        const { url, session, grant } = world;
        const { obstacle, write } = await prepare(world);
        await session.query(`BEGIN; ${obstacle}`);
        const written = write();
        await waiting(url, 1);
        let granted: Term | null = null;
        const grants = grant().then((term) => (granted = term));
        await waiting(url, 2);
        assert.equal(granted, null);
        await session.query("ROLLBACK");
        await grants;
        assert.equal(
          (await session.query(trace)).rowCount,
          1,
          "it is there with the grant, or will never be",
        );
        await written;
      }));

    void test("waits for a grant that has begun, and is refused", () =>
      withWorld(async (world) => {
        const { url, session } = world;
        const { write } = await prepare(world);
        await session.query("BEGIN; UPDATE baton.term SET epoch = epoch + 1, incarnation = '2'");
        const written = write();
        written.catch(() => {});
        await waiting(url, 1);
        await session.query("COMMIT");
        await assert.rejects(written, refused);
        assert.equal((await session.query(trace)).rowCount, 0);
      }));

    void test("goes on when that grant comes to nothing", () =>
      withWorld(async (world) => {
        const { url, session } = world;
        const { write } = await prepare(world);
        await session.query("BEGIN; UPDATE baton.term SET epoch = epoch + 1, incarnation = '2'");
        const written = write();
        await waiting(url, 1);
        await session.query("ROLLBACK");
        await written;
        assert.equal((await session.query(trace)).rowCount, 1);
      }));
  });
}

void describe("many fenced writes", () => {
  void test("leave a gap for a grant, and none of them is committed after it", () =>
    withWorld(async ({ leader, fence, session, grant }) => {
      await leader.jobs.submit(
        Array.from({ length: 3_000 }, () => newJob()),
        AUTHOR,
      );
      let over = false;
      let agents = 0;
      /** As an agent does it, again and again, until the term is over. */
      const work = async (): Promise<void> => {
        for (;;) {
          const { jobs } = await leader.jobs.claim(request(fence, `n${agents++}`, { limit: 4 }));
          const settlements = jobs.map((run) => ({ run, outcome: COMPLETED }));
          await settleRuns(leader, settlements, fence);
        }
      };
      const workers = Array.from({ length: 10 }, async () => {
        await assert.rejects(work(), refused);
        assert.ok(over, "nobody is refused before the grant has begun");
      });
      const state =
        "SELECT (SELECT count(*) FROM baton.done) AS done, (SELECT sum(job_epoch) FROM baton.live) AS claims";
      await sleep(300);
      over = true;
      const before = systemClock.monotonic();
      await grant();
      const tookMs = systemClock.monotonic() - before;
      const { rows } = await session.query(state);
      await Promise.all(workers);
      assert.deepEqual((await session.query(state)).rows, rows);
      assert.ok(Number((rows[0] as { done: string }).done) > 0);
      assert.ok(tookMs < 5_000, `the grant took ${tookMs} ms`);
    }));
});

void describe("a fenced claim that finds nothing", () => {
  void test("writes nothing: no lease, and no lock of the term", () =>
    withWorld(async ({ leader, fence, session }) => {
      const marks = "SELECT xmax::text FROM baton.term UNION ALL SELECT name FROM baton.lease";
      const { rows } = await session.query(marks);
      const claimed = await leader.jobs.claim(request(fence, "idle"));
      assert.deepEqual(claimed, { jobs: [], held: true, nextDueInMs: null });
      assert.deepEqual((await session.query(marks)).rows, rows);
    }));
});

/** Dispatch and ownership over several connections at the same moment, and what they leave in the tables. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Client } from "pg";
import type { Term } from "../../../src/core/leadership/term.ts";
import type { PostgresStore } from "../../../src/store/postgres/store.ts";
import type { NewJob } from "../../../src/store/store.ts";
import { AUTHOR, LEASE_MS } from "../../support/store-world.ts";
import { newJob } from "../../support/job-builders.ts";
import { server, waiting, withSession, withStores, withStoresOn } from "./postgres-world.ts";
import { A, B, COMPLETED, dispatchRequest, jobsOf, wanted } from "./ownership-world.ts";
import { columns } from "../../support/columns.ts";

interface Shared {
  readonly stores: readonly PostgresStore[];
  readonly url: string;
  readonly term: Term;
}

const shared = (count: number, proof: (world: Shared) => Promise<void>): Promise<void> =>
  withStores(count, (stores, url) => granted(stores, url, proof));

async function granted(
  stores: readonly PostgresStore[],
  url: string,
  proof: (world: Shared) => Promise<void>,
): Promise<void> {
  await proof({ stores, url, term: await stores[0]!.terms.grant("scheduler", A) });
}

/** While somebody else has said this inside a transaction. */
const during = (url: string, said: string, work: (session: Client) => Promise<void>): Promise<void> =>
  withSession(url, async (session) => {
    await session.query(`BEGIN; ${said}`);
    await work(session);
  });

async function submit(store: PostgresStore, count: number, fields: Partial<NewJob> = {}): Promise<NewJob[]> {
  const jobs = Array.from({ length: count }, () => newJob(fields));
  await store.jobs.submit(jobs, AUTHOR);
  return jobs;
}

void describe("ownership on a postgres store that is shared", () => {
  void test("dispatches that overlap mark each job once", () =>
    shared(3, async ({ stores, term }) => {
      await submit(stores[0]!, 900);
      const seen: string[] = [];
      const dispatching = stores.map(async ({ ownership }) => {
        for (let empty = 0; empty < 3;) {
          const { assignments } = await ownership.dispatch(dispatchRequest({ limit: 30, size: 7 }), term);
          if (assignments.length === 0) empty++;
          seen.push(...jobsOf(assignments).map(({ id }) => id));
        }
      });
      await Promise.all(dispatching);
      assert.equal(seen.length, 900);
      assert.equal(new Set(seen).size, 900);
    }));

  void test("a dispatch that a grant overtakes marks nothing", () =>
    shared(1, async ({ stores: [store], url, term }) => {
      await submit(store!, 3);
      await during(url, "UPDATE baton.term SET epoch = epoch + 1, incarnation = 'next'", async (session) => {
        const dispatch = store!.ownership.dispatch(dispatchRequest(), term);
        dispatch.catch(() => {});
        await waiting(url, 1);
        await session.query("COMMIT");
        await assert.rejects(dispatch, { code: "STALE_EPOCH" });
      });
      assert.deepEqual(await server.query("SELECT FROM baton.live WHERE assignment IS NOT NULL", url), []);
      assert.deepEqual(await server.query("SELECT FROM baton.assignment", url), []);
    }));

  for (const outcome of [COMPLETED, { kind: "interrupted" } as const]) {
    void test(`a write that a handoff overtakes changes nothing (${outcome.kind})`, () =>
      shared(1, async ({ stores: [store], url, term }) => {
        const { ownership } = store!;
        await submit(store!, 1);
        const { assignments } = await ownership.dispatch(dispatchRequest(), term);
        const request = wanted(assignments);
        await ownership.accept(request);
        const [{ id: assignment }] = assignments as [(typeof assignments)[0]];
        await ownership.own([{ assignment, ownerEpoch: 0 }], A);
        const run = { ...request.runs[0]!, lease: request.lease };
        const events = { assignment, reports: [], settlements: [{ run, outcome }] };
        const taking = `UPDATE baton.assignment SET owner = '${B.incarnation}', owner_name = '${B.name}', owner_epoch = 2`;
        await during(url, taking, async (session) => {
          const late = ownership.record([{ ...events, ownerEpoch: 1 }], A);
          await waiting(url, 1);
          await session.query("COMMIT");
          assert.deepEqual(await late, [null]);
        });
        assert.equal((await store!.jobs.get(run.id))!.status, "processing");
        const next = await ownership.record([{ ...events, ownerEpoch: 2 }], B);
        assert.deepEqual(next[0]!.settled, ["accepted"]);
      }));
  }

  void test("who takes an assignment over waits for the write of its owner", () =>
    shared(1, async ({ stores: [store], url, term }) => {
      const { ownership } = store!;
      await submit(store!, 1);
      const { assignments } = await ownership.dispatch(dispatchRequest(), term);
      const held = { assignment: assignments[0]!.id, ownerEpoch: 0 };
      await during(url, "SELECT FROM baton.assignment FOR SHARE", async (session) => {
        const owning = ownership.own([held], A);
        await waiting(url, 1);
        await session.query("COMMIT");
        assert.deepEqual(await owning, [1]);
      });
    }));

  void test("a mark that an older version has left on a job that is back in line times out", () =>
    shared(1, async ({ stores: [store], url, term }) => {
      const { ownership } = store!;
      const [job] = await submit(store!, 1);
      const { assignments } = await ownership.dispatch(dispatchRequest(), term);
      // As a version that does not know the column claims a job, and gives it back.
      await server.query("UPDATE baton.live SET job_epoch = job_epoch + 1", url);
      assert.deepEqual((await ownership.accept(wanted(assignments))).accepted, [false]);
      await ownership.undispatch(0, term);
      const again = await ownership.dispatch(dispatchRequest(), term);
      assert.deepEqual(columns(jobsOf(again.assignments), "id", "jobEpoch"), [[job!.id, 2]]);
    }));

  void test("a mark whose assignment is gone is taken off at once", () =>
    shared(1, async ({ stores: [store], term }) => {
      const { ownership } = store!;
      await submit(store!, 1);
      const { assignments } = await ownership.dispatch(dispatchRequest(), term);
      const held = { assignment: assignments[0]!.id, ownerEpoch: 0 };
      await ownership.own([held], A);
      await ownership.release([{ ...held, ownerEpoch: 1 }], A, "finished");
      assert.deepEqual([...(await ownership.undispatch(LEASE_MS, term)).freed], [["default", 1]]);
    }));

  // On a database of its own: the server counts what happens to a table from its creation on.
  void test("marks and accepts touch no index", async () => {
    const url = await server.createDatabase();
    await withStoresOn(url, 1, (stores) =>
      granted(stores, url, async ({ term }) => {
        const [store] = stores;
        await submit(store!, 200);
        const { assignments } = await store!.ownership.dispatch(dispatchRequest({ limit: 200 }), term);
        await store!.ownership.accept(wanted(assignments));
      }),
    );
    const [told] = await server.query(
      "SELECT n_tup_upd::int AS updated, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables WHERE relname = 'live'",
      url,
    );
    const { updated, hot } = told as { updated: number; hot: number };
    assert.equal(updated, 400);
    assert.ok(hot >= 380, `${hot} of ${updated} were HOT`);
  });
});

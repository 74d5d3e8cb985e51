/**
 * Ranges under workers that meet: whatever they do at the same time, each job is in exactly one row, each number is in at
 * most one range, and each run has at most one accepted result. Mistakes planted into the statements show that the checks can
 * fail.
 */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type JobId, jobId, uuidAt } from "../../../src/core/ids.ts";
import { DEFAULT_BUDGETS } from "../../../src/core/jobs/job.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import type { Random } from "../../../src/platform/random.ts";
import { COMPLETE_PIECES } from "../../../src/store/postgres/jobs/complete.ts";
import { CLAIM, CLAIM_MANY, CLAIM_QUICK } from "../../../src/store/postgres/jobs/claim/claim.ts";
import { LIVE_APART, RANGE_MAX } from "../../../src/store/postgres/jobs/ranges.ts";
import { openPostgresStore, type PostgresStore } from "../../../src/store/postgres/store.ts";
import type { ClaimedJob, ClaimRequest, NewJob, Outcome, Settlement } from "../../../src/store/store.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { claimRequest, newJob } from "../../support/job-builders.ts";
import { AUTHOR, ERROR, lease, LEASE_MS, NODE, settleRuns } from "../../support/store-world.ts";
import { server } from "./postgres-world.ts";
import { columns } from "../../support/columns.ts";

/** Jobs that are in no row or in several, and the numbers that two ranges share. */
const ASTRAY = `
  WITH place AS (
    SELECT seq, n FROM baton.live UNION ALL SELECT seq, n FROM baton.done
  ), covered AS (
    SELECT seq + at AS seq FROM place CROSS JOIN LATERAL generate_series(0, n - 1) AS at
  )
  SELECT coalesce(j.seq, c.seq)::text AS seq, count(c.seq)::int AS rows, count(j.seq) > 0 AS is_job
  FROM baton.job j FULL JOIN covered c USING (seq) GROUP BY 1 HAVING count(c.seq) <> 1 OR count(j.seq) = 0`;
const FIRST_IDS = `
  SELECT p.seq::text FROM (SELECT seq, id FROM baton.live UNION ALL SELECT seq, id FROM baton.done) AS p
  JOIN baton.job j USING (seq) WHERE j.id <> p.id`;
const COUNTED = `
  SELECT (SELECT coalesce(sum(n), 0)::int FROM baton.tally) AS counted, (SELECT coalesce(sum(n), 0)::int FROM baton.done) AS ended`;

async function assertWhole(url: string): Promise<void> {
  assert.deepEqual(await server.query(ASTRAY, url), [], "jobs without a row of their own, or with several");
  assert.deepEqual(await server.query(FIRST_IDS, url), [], "rows with the id of another job");
  const [sums] = (await server.query(COUNTED, url)) as { counted: number; ended: number }[];
  assert.equal(sums!.counted, sums!.ended, "finished jobs are counted");
}

function batch(random: Random, count: number, fields: Partial<NewJob> = {}): NewJob[] {
  const first = random.timedUuid();
  return Array.from({ length: count }, (_, at) =>
    newJob({ id: jobId(NODE, uuidAt(first, at)), payload: `{"at":${at}}`, maxAttempts: 1_000, ...fields }),
  );
}

const request = (name: string, limit: number): ClaimRequest =>
  claimRequest({ author: AUTHOR, lease: lease(name), leaseMs: LEASE_MS, limit, suspect: false });

const COMPLETED: Outcome = { kind: "completed", result: "null" };
const OUTCOMES: readonly Outcome[] = [
  ...Array.from({ length: 12 }, () => COMPLETED),
  { kind: "completed", result: '"some"' },
  { kind: "retry", error: ERROR, delayMs: 0 },
  { kind: "failed", error: ERROR, spends: "failure" },
  { kind: "released" },
];

class Crowd {
  readonly #stores: readonly PostgresStore[];
  readonly #random: Random;
  readonly #ids: JobId[] = [];
  readonly #lost: string[] = [];
  readonly #accepted = new Map<string, number>();
  #lives = 0;
  #claims = 0;
  over = false;
  recovered = 0;

  constructor(stores: readonly PostgresStore[], random: Random) {
    this.#stores = stores;
    this.#random = random;
  }

  async submit(count: number, queue: string): Promise<void> {
    const jobs = batch(this.#random, count, { queue });
    this.#ids.push(...jobs.map(({ id }) => id));
    await this.#store().jobs.submit(jobs, AUTHOR);
  }

  /** Takes slices and settles pieces, several at a time; the answer of the first claim is lost, and of every 16th after it. */
  async work(): Promise<void> {
    let lease = this.#lease();
    for (let idle = 0; idle < 3;) {
      const { jobs } = await this.#store().jobs.claim(request(lease, 1 + this.#below(90)));
      if (jobs.length === 0) {
        idle++;
        await systemClock.turn();
        continue;
      }
      idle = 0;
      if (this.#claims++ % 16 === 0) {
        this.#lost.push(lease.split("/")[0]!);
        lease = this.#lease();
        continue;
      }
      const parts: ClaimedJob[][] = [[], [], []];
      for (const job of jobs) parts[this.#random.chance() < 0.8 ? 0 : 1 + this.#below(2)]!.push(job);
      await Promise.all(parts.map((part) => this.#settle(part)));
    }
  }

  async meddle(): Promise<void> {
    while (!this.over) {
      const id = this.#ids[this.#below(this.#ids.length)]!;
      const { jobs } = this.#store();
      const what = this.#below(4);
      if (what === 0) await jobs.cancel(id, null);
      else if (what === 1) await jobs.retry(id);
      else if (what === 2) assert.ok(await jobs.get(id));
      else await jobs.list({ limit: 20 });
    }
  }

  /** Of what was lost: the leases end, and their jobs run again. */
  async recover(): Promise<number> {
    const [store] = this.#stores;
    const names = this.#lost.splice(0);
    const term = await store!.terms.grant("scheduler", { name: NODE, incarnation: "1" });
    const recovered = await store!.jobs.recover({ by: "holders", names }, BUDGETS, term);
    this.recovered += recovered.length;
    return recovered.length;
  }

  assertOnce(): void {
    for (const [run, times] of this.#accepted) assert.equal(times, 1, `${run} was accepted ${times} times`);
  }

  async #settle(jobs: readonly ClaimedJob[]): Promise<void> {
    if (jobs.length === 0) return;
    const settlements = jobs.map((run): Settlement => ({ run, outcome: this.#outcome() }));
    const store = this.#store();
    if (this.#random.chance() < 0.3) {
      const report = {
        run: jobs[0]!,
        logs: [{ at: 1, level: "info" as const, message: "m" }],
        progress: null,
      };
      await store.jobs.record({ reports: [report], settlements: [] });
    }
    const verdicts = await settleRuns(store, settlements);
    for (const [at, verdict] of verdicts.entries()) {
      if (verdict !== "accepted") continue;
      const run = `${jobs[at]!.id} ${jobs[at]!.jobEpoch}`;
      this.#accepted.set(run, (this.#accepted.get(run) ?? 0) + 1);
    }
    const again = await settleRuns(store, settlements.slice(0, 5));
    assert.ok(!again.includes("accepted"), "a settlement that was sent again was accepted twice");
    assert.ok(
      verdicts.every((verdict) => verdict === "accepted"),
      `${verdicts.join(" ")} of runs that are held`,
    );
  }

  #outcome(): Outcome {
    return OUTCOMES[this.#below(OUTCOMES.length)]!;
  }

  #lease(): string {
    return `w${++this.#lives}/${this.#lives}/0`;
  }

  #store(): PostgresStore {
    return this.#stores[this.#below(this.#stores.length)]!;
  }

  #below(count: number): number {
    return Math.floor(this.#random.chance() * count);
  }
}

const BUDGETS = { ...DEFAULT_BUDGETS, interruptionsMax: 1_000 };

async function onNewStore(use: (store: PostgresStore, url: string) => Promise<void>): Promise<void> {
  const url = await server.createDatabase();
  const store = await openPostgresStore({ url, clock: systemClock });
  try {
    await use(store, url);
  } finally {
    await store.close();
    await server.giveBack(url);
  }
}

/** One worker: a slice, a piece out of its middle, a report, and a piece of what the report has taken apart. */
async function alone(store: PostgresStore, url: string): Promise<void> {
  await store.jobs.submit(batch(seededRandom(5), 100), AUTHOR);
  const { jobs } = await store.jobs.claim(request("alone/1/0", 40));
  assert.equal(jobs.length, 40);
  await assertWhole(url);
  const end = async (from: number, to: number): Promise<void> => {
    await settleRuns(
      store,
      jobs.slice(from, to).map((run) => ({ run, outcome: COMPLETED })),
    );
    await assertWhole(url);
  };
  await end(5, 10);
  const logs = [{ at: 1, level: "info" as const, message: "m" }];
  await store.jobs.record({ reports: [{ run: jobs[20]!, logs, progress: null }], settlements: [] });
  await end(15, 35);
  await end(0, 40);
}

/** Four workers on two stores, and two callers who cancel, retry and read. Checked after every round. */
async function meet(seed: number, rounds: number): Promise<void> {
  const url = await server.createDatabase();
  const open = () => openPostgresStore({ url, clock: systemClock });
  const stores = [await open(), await open()];
  const crowd = new Crowd(stores, seededRandom(seed));
  let meddling: Promise<unknown> = Promise.resolve();
  try {
    for (const [at, count] of [1, 300, 40, 700, 129, 3].entries()) await crowd.submit(count, `q${at % 3}`);
    meddling = Promise.all([crowd.meddle(), crowd.meddle()]);
    meddling.catch(() => {}); // awaited below
    for (let left = rounds; left > 0 || (await crowd.recover()) > 0; left--) {
      await Promise.all([crowd.work(), crowd.work(), crowd.work(), crowd.work()]);
      await assertWhole(url);
      if (left > 1) await crowd.recover();
    }
    crowd.over = true;
    await meddling;
    await crowd.work();
    crowd.assertOnce();
    await assertWhole(url);
    assert.ok(crowd.recovered > 0, "answers were lost, and their jobs given back");
  } finally {
    crowd.over = true;
    await meddling.catch(() => {});
    for (const store of stores) await store.close();
    await server.giveBack(url);
  }
}

void describe("ranges", () => {
  for (const seed of [1, 2, 3]) {
    void test(`workers that meet leave each job in one row, with one accepted result (${seed})`, () =>
      meet(seed, 3));
  }

  void test("one worker takes slices and ends pieces of them", () => onNewStore(alone));

  void test("a bulk of jobs is a few rows from its submit to its end", () =>
    onNewStore(async (store, url) => {
      const jobs = batch(seededRandom(4), 1_000);
      await store.jobs.submit(jobs, AUTHOR);
      const rows = async (table: string) =>
        ((await server.query(`SELECT count(*)::int AS n FROM baton.${table}`, url)) as { n: number }[])[0]!.n;
      const few = Math.ceil(1_000 / RANGE_MAX) + 2;
      assert.ok((await rows("live")) <= few);
      const claimed: ClaimedJob[] = [];
      for (const limit of [300, 1, 699])
        claimed.push(...(await store.jobs.claim(request("w/1/0", limit))).jobs);
      assert.deepEqual(
        columns(claimed, "id", "payload"),
        jobs.map(({ id, payload }) => [id, payload]),
      );
      assert.ok((await rows("live")) <= few + 3);
      for (const [from, to] of [
        [0, 500],
        [500, 1_000],
      ] as const)
        await settleRuns(
          store,
          claimed.slice(from, to).map((run) => ({ run, outcome: COMPLETED })),
        );
      assert.equal(await rows("live"), 0);
      assert.ok((await rows("done")) <= few + 4);
      await assertWhole(url);
    }));
});

interface Planted {
  readonly statements: readonly { readonly text: string }[];
  readonly right: string;
  readonly wrong: string;
}

const MISTAKES: Readonly<Record<string, Planted>> = {
  "the rest of a slice overlaps it": {
    statements: [CLAIM, CLAIM_QUICK, CLAIM_MANY],
    right: "SELECT l.seq + cut.n, baton.id_at(l.id, cut.n), l.n - cut.n,",
    wrong: "SELECT l.seq + cut.n - 1, baton.id_at(l.id, cut.n - 1), l.n - cut.n + 1,",
  },
  "the rest of a slice is forgotten": {
    statements: [CLAIM, CLAIM_QUICK, CLAIM_MANY],
    right: "WHERE l.seq IN (SELECT seq FROM taken)",
    wrong: "WHERE false",
  },
  "a slice takes the whole row": {
    statements: [CLAIM, CLAIM_QUICK, CLAIM_MANY],
    right: "THEN (SELECT n FROM cut)",
    wrong: "THEN l.n",
  },
  "what is behind a piece is forgotten": {
    statements: [COMPLETE_PIECES],
    right: "AS followed WHERE until > seq + n",
    wrong: "AS followed WHERE false",
  },
  "a piece ends the whole row": {
    statements: [COMPLETE_PIECES],
    right: "SET n = o.first - o.origin",
    wrong: "SET n = 1",
  },
  "a piece is settled that its row does not contain": {
    statements: [COMPLETE_PIECES],
    right: "AND a.seq + a.n <= l.seq + l.n",
    wrong: "",
  },
  "the last one of a range is left out when it is taken apart": {
    statements: [LIVE_APART],
    right: "generate_series(1, n - 1)",
    wrong: "generate_series(1, n - 2)",
  },
};

void describe("of the mistakes that were planted, one worker finds that", () => {
  for (const [mistake, { statements, right, wrong }] of Object.entries(MISTAKES)) {
    void test(mistake, async () => {
      const texts = statements.map(({ text }) => text);
      for (const statement of statements as { text: string }[]) {
        assert.ok(statement.text.includes(right), "the statement is not the one that is spoilt here");
        statement.text = statement.text.replace(right, wrong);
      }
      try {
        await assert.rejects(onNewStore(alone));
      } finally {
        for (const [at, statement] of (statements as { text: string }[]).entries())
          statement.text = texts[at]!;
      }
    });
  }
});

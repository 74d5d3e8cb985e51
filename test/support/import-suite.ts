/**
 * What `baton import` makes of what test/adapters/old-systems.ts has put into BullMQ and pg-boss. `npm test` runs it on what
 * the libraries have written once (test/node/cli/import.test.ts), `npm run test:import` on the libraries themselves.
 */

import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import { BatonClient } from "../../src/client/baton-client.ts";
import type { ImportResult } from "../../src/cli/import/importer.ts";
import { type Ran, runCli } from "../unit/cli/run-cli.ts";
import { nodeHere } from "./node-here.ts";
import { systemClock } from "../../src/platform/clock.ts";

/** When the delayed jobs are due: a fixture must not be out of date before. */
export const LATER = Date.UTC(2036, 0, 1);

export type ImportKind = "bullmq" | "pg-boss";

interface Expected {
  /** Each as `task queue priority attempts payload`, in the order in which they run. */
  readonly jobs: readonly string[];
  /** As `name task cron|every zone priority attempts missed payload`. */
  readonly schedules: readonly string[];
  readonly refusedJobs: readonly RegExp[];
  readonly refusedSchedules: readonly RegExp[];
  readonly left: ImportResult["left"];
  readonly warning: RegExp;
}

const EXPECTED: Readonly<Record<ImportKind, Expected>> = {
  bullmq: {
    jobs: [
      'welcome mail 0 5 {"to":"ada"}',
      'welcome mail 0 1 {"to":"bob"}',
      "pulse mail 0 1 {}",
      'invoice mail -3 1 {"order":3}',
      'invoice mail -100 1 {"order":500}',
      'welcome mail 0 1 {"to":"cy"} later',
      'welcome mail 0 3 {"to":"failed once"} later',
      "build reports 0 1 {}",
    ],
    schedules: [
      "mail/local report mail 0 4 * * * UTC -2 3 run_once",
      "mail/nightly report mail 0 3 * * * Europe/Berlin -2 3 run_once",
      "mail/pulse pulse mail 900000 null 0 1 run_once",
    ],
    refusedJobs: [
      /^mail order-9: "no name here!" cannot be the name of a task here; give it another with --task/,
    ],
    refusedSchedules: [/^mail\/limited: schedules here have no limit and no startDate$/],
    left: [
      { from: "mail", active: 1, flows: 2 },
      { from: "reports", active: 0, flows: 0 },
    ],
    warning: /^warning: queue reports: it is not paused there/m,
  },
  "pg-boss": {
    jobs: [
      'mail mail 100 5 {"order":5000}',
      'mail mail 7 5 {"order":7}',
      'mail mail 0 4 {"to":"failed once"} later',
      'mail mail 0 5 {"to":"ada"}',
      'mail mail 0 1 {"to":"bob"}',
      'mail mail 0 5 {"to":"cy"} later',
      "reports reports 0 3 null",
    ],
    schedules: [
      "reports reports reports 0 3 * * * Europe/Berlin 2 2 run_once",
      "reports/early reports reports 0 4 * * * UTC 0 3 skip",
    ],
    refusedJobs: [],
    refusedSchedules: [
      /^reports\/rule: it is written as an rrule, and schedules here have cron expressions$/,
    ],
    left: [
      { from: "mail", active: 1, flows: 2 },
      { from: "reports", active: 0, flows: 0 },
    ],
    warning: /^$/m,
  },
};

export interface OldSystem {
  readonly url: string;
  /** When it is imported: before the next time of its schedules. */
  readonly now: number;
  /** All that is in it. */
  contents(): Promise<string>;
  close(): Promise<unknown>;
}

export function importSuite(name: string, kind: ImportKind, open: () => Promise<OldSystem>): void {
  describe(`baton import ${name}`, () => {
    const expected = EXPECTED[kind];
    let old: OldSystem;
    before(async () => {
      old = await open();
    });
    after(() => old?.close());

    const importing = (node: { url: string }, ...args: string[]): Promise<Ran> => {
      const all = ["import", kind, old.url, "-o", "json", "--url", node.url, ...args];
      return runCli(all, { clock: { ...systemClock, now: () => old.now } });
    };

    it("takes over what waits and the schedules, once, and changes nothing there", async (t) => {
      const { node, client } = await opened(t);
      const before = await old.contents();
      const dry = await importing(node, "--dry-run");
      assert.deepEqual(await jobsOf(client), []);
      assert.match(dry.err, /nothing was imported: this was a dry run/);

      const ran = await importing(node);
      const result = JSON.parse(ran.out) as ImportResult;
      assert.equal(
        ran.code,
        expected.refusedJobs.length + expected.refusedSchedules.length > 0 ? 1 : 0,
        ran.err,
      );
      assert.deepEqual(await jobsOf(client), expected.jobs);
      assert.deepEqual(await schedulesOf(client), expected.schedules);
      const refused = result.refused.map(({ from, id, message }) => `${from} ${id}: ${message}`);
      matchAll(refused, expected.refusedJobs);
      const refusedSchedules = result.schedules.filter(({ outcome }) => outcome === "refused");
      matchAll(
        refusedSchedules.map(({ schedule, message }) => `${schedule}: ${message}`),
        expected.refusedSchedules,
      );
      assert.deepEqual(result.left, expected.left);
      assert.match(ran.err, expected.warning);
      assert.match(ran.err, /^note: 1 active job left alone/m);
      assert.match(ran.err, /^note: no node and no agent knows the task report/m);
      const found = (JSON.parse(dry.out) as ImportResult).jobs.map((row) => [row.task, row.found]);
      assert.deepEqual(
        found,
        result.jobs.map((row) => [row.task, row.imported + row.refused]),
      );

      const again = JSON.parse((await importing(node)).out) as ImportResult;
      assert.deepEqual(await jobsOf(client), expected.jobs);
      assert.deepEqual(
        again.jobs.map(({ imported, existed }) => [imported, existed]),
        result.jobs.map(({ imported }) => [0, imported]),
      );
      const outcomes = new Set(again.schedules.map(({ outcome }) => outcome));
      assert.deepEqual([...outcomes].sort(), ["existed", "refused"]);
      assert.equal(await old.contents(), before);
    });

    it("takes one queue, under new names", async (t) => {
      const { node, client } = await opened(t);
      const task = kind === "bullmq" ? "build" : "reports";
      const names = ["--queue", "reports=night", "--task", `${task}=month`, "--task", "reprots=x"];
      const ran = await importing(node, ...names);
      assert.match((await jobsOf(client)).join("\n"), /^month night 0 \d \S+$/);
      assert.match(ran.err, /^note: nothing there was named "reprots", as --task says$/m);
      assert.deepEqual(
        (JSON.parse(ran.out) as ImportResult).left.map(({ from }) => from),
        ["reports"],
      );
    });

    it("says what is there when a queue is not", async (t) => {
      const { node } = await opened(t);
      const { code, err } = await importing(node, "--queue", "mial");
      assert.equal(code, 3);
      assert.match(err, /^error: there is no queue "mial" in .*\nhint: did you mean "mail"\?$/m);
    });
  });
}

export async function opened(t: TestContext) {
  const node = await nodeHere(t, { http: true, settings: { WORKER__CONCURRENCY: "0" } });
  const client = new BatonClient({ url: node.url, discover: false });
  t.after(() => client.close());
  return { node: { url: node.url }, client };
}

export async function jobsOf(client: BatonClient): Promise<readonly string[]> {
  const { items } = await client.cluster.jobs({ limit: 100 });
  const jobs = await Promise.all(items.map(({ job_id }) => client.job(job_id)));
  return jobs.reverse().map((job) => {
    const { task, queue, priority, max_attempts: attempts, payload, status, run_at } = job;
    if (status === "scheduled") assert.equal(Math.round((Date.parse(run_at) - LATER) / 600_000), 0);
    const later = status === "scheduled" ? " later" : "";
    return `${task} ${queue} ${priority} ${attempts} ${JSON.stringify(payload)}${later}`;
  });
}

async function schedulesOf(client: BatonClient): Promise<readonly string[]> {
  const { schedules } = await client.schedules();
  return schedules
    .map(({ name, task, queue, cron, every_ms, zone, priority, max_attempts, missed }) =>
      [name, task, queue, cron ?? every_ms, String(zone), priority, max_attempts, missed].join(" "),
    )
    .sort();
}

function matchAll(found: readonly string[], patterns: readonly RegExp[]): void {
  assert.equal(found.length, patterns.length, found.join("\n"));
  for (const [at, pattern] of patterns.entries()) assert.match(found[at]!, pattern);
}

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { queues } from "../../../../src/channels/channel-names.ts";
import type { Dispatch } from "../../../../src/channels/messages.ts";
import { DEFAULT_BUDGETS } from "../../../../src/core/jobs/job.ts";
import { HeldRuns } from "../../../support/node-worker.ts";
import { dispatching, CountedRuns, DispatchWorld, HEARTBEAT_MS, LEADER } from "./world.ts";

describe("a leader that dispatches", () => {
  it("starts a job that comes to an idle cluster at once", async (t) => {
    const { world, runs } = await dispatching(t);
    await world.node("worker", { tasks: { work: runs.quick } });
    await world.until(await world.submit(1), "completed");
    const startedAt = world.clock.monotonic();
    for (let i = 0; i < 10; i++) await world.until(await world.submit(1), "completed");
    const tookMs = world.clock.monotonic() - startedAt;
    assert.ok(
      tookMs < 5 * HEARTBEAT_MS,
      `ten jobs, one after the other, took ${tookMs} ms of waiting for timers`,
    );
  });

  it("leaves in the store what nobody wants yet, so that an urgent job goes first", async (t) => {
    const held = new HeldRuns();
    const { world } = await dispatching(t);
    await world.node("worker", { tasks: { work: held.polite }, settings: { concurrency: 2 } });
    await world.submit(20);
    await world.eventually("two run", () => held.started.length === 2);
    const outstanding = world.outstanding();
    assert.ok((outstanding.get("default") ?? 0) <= 2, `${outstanding.get("default")} wait for two slots`);
    const [urgent] = await world.submit(1, { priority: 50 });
    await world.pass(50);
    for (let i = 0; i < 2; i++) held.finish(i);
    await world.eventually("others run", () => held.started.length >= 4);
    const ids = held.started.slice(2, 4).map(({ job }) => job.id);
    assert.ok(ids.includes(urgent!), "the urgent one is among the next two");
  });

  it("sends no job to a worker that lacks its task", async (t) => {
    const world = await DispatchWorld.open(t);
    const [one, both] = [new CountedRuns(world), new CountedRuns(world)];
    await world.lead();
    await world.owner();
    await world.node("knows-one", { tasks: { work: one.quick } });
    await world.node("knows-both", { tasks: { work: both.quick, rare: both.quick } });
    const rare = await world.submit(50, { task: "rare" });
    const work = await world.submit(50);
    await world.until([...rare, ...work], "completed");
    both.assertOnce(rare);
    assert.equal(one.order.filter((id) => rare.some((known) => known === id)).length, 0);
    const unknown = await world.submit(1, { task: "unheard-of" });
    await world.until(await world.submit(1), "completed"); // a later one: the dispatcher has seen both
    assert.equal((await world.job(unknown[0]!)).status, "queued");
    assert.equal(await outstandingJobs(world), 0, "nobody knows it, so nobody is sent it");
  });

  it("keeps to the queues of its workers", async (t) => {
    const world = await DispatchWorld.open(t);
    const [mail, rest] = [new CountedRuns(world), new CountedRuns(world)];
    await world.lead();
    await world.owner();
    const work = (runs: CountedRuns) => ({ work: runs.quick });
    await world.node("mail", { tasks: work(mail), settings: { queues: new Set(["mail"]) } });
    await world.node("rest", { tasks: work(rest), settings: { exceptQueues: new Set(["mail"]) } });
    const mails = await world.submit(30, { queue: "mail" });
    const others = await world.submit(30, { queue: "other" });
    await world.until([...mails, ...others], "completed");
    mail.assertOnce(mails);
    rest.assertOnce(others);
  });

  it("runs a job when it is due, and again after the delay when it failed", async (t) => {
    const world = await DispatchWorld.open(t);
    const starts: number[] = [];
    await world.lead();
    await world.owner();
    const work = (): void => {
      starts.push(world.clock.monotonic());
      if (starts.length === 1) throw new Error("not today");
    };
    await world.node("worker", { tasks: { work } });
    const submittedAt = world.clock.monotonic();
    const ids = await world.submit(1, { delayMs: 200 });
    await world.until(ids, "scheduled");
    await world.eventually("its first run", () => starts.length === 1);
    const waitedMs = starts[0]! - submittedAt;
    assert.ok(waitedMs >= 199, `due after 200 ms, started after ${waitedMs}`);
    await world.until(ids, "completed");
    assert.equal((await world.job(ids[0]!)).failures, 1);
  });

  it("goes on in the next term with what the term before had marked", async (t) => {
    const { world, runs, leader: first } = await dispatching(t);
    await world.node("worker", { tasks: { work: runs.slow(5) } });
    const ids = await world.submit(200);
    await world.eventually("some have run", () => runs.order.length > 20);
    first.channels.fate = () => "drop"; // what it marks from now on is lost
    await world.eventually("something is lost", async () => (await outstandingJobs(world)) > 0);
    await first.end();
    const second = await world.lead();
    await world.until(ids, "completed");
    runs.assertOnce(ids);
    assert.deepEqual(second.dispatcher.channels(), [queues.dispatch("default")]);
    assert.deepEqual(first.dispatcher.channels(), []);
  });

  it("puts few jobs into an assignment, and one into a message, unless they are short", async (t) => {
    const held = new HeldRuns();
    const { world, leader } = await dispatching(t);
    const sent: Dispatch[] = [];
    leader.channels.fate = (queue, messages) => {
      if (queue.startsWith("job.dispatch.")) sent.push(...messages.map(({ body }) => body as Dispatch));
      return "pass";
    };
    const short = new CountedRuns(world);
    const settings = { concurrency: 30 };
    await world.node("worker", { tasks: { long: held.polite, short: short.quick }, settings });
    await world.submit(60, { task: "long" });
    await world.eventually("all slots are busy", () => held.started.length === 30);
    assert.ok(sent.every(({ jobs }) => jobs.length === 1));
    const sizes = Map.groupBy(sent, ({ assignment }) => assignment);
    assert.ok([...sizes.values()].every((messages) => messages.length <= 20));
    sent.length = 0;
    for (let i = 0; i < 30; i++) held.finish(i);
    await world.eventually("the others run", () => held.started.length === 60);
    for (let i = 30; i < 60; i++) held.finish(i);
    await world.until(await world.submit(2_000, { task: "short" }), "completed");
    assert.ok(
      sent.some(({ jobs }) => jobs.length > 5),
      "short ones travel together",
    );
    assert.ok(sent.every(({ jobs }) => jobs.length <= 25));
  });
});

describe("suspects", () => {
  it("run one at a time on a worker, beside jobs that are none", async (t) => {
    const world = await DispatchWorld.open(t);
    const { crashesMax } = DEFAULT_BUDGETS;
    const suspects = await world.submit(3);
    const term = await world.store.terms.grant("scheduler", { name: LEADER, incarnation: "dead" });
    for (let crash = 1; crash < crashesMax; crash++) {
      await world.claim(`node/dead/${crash}`);
      await world.store.jobs.recover({ by: "incarnations", incarnations: ["dead"] }, DEFAULT_BUDGETS, term);
    }
    const held = new HeldRuns();
    await world.lead();
    await world.owner();
    await world.node("worker", { tasks: { work: held.polite } });
    const others = await world.submit(3);
    await world.eventually("four run", () => held.started.length === 4);
    await world.pass(100);
    const running = (): number => held.started.filter(({ job }) => suspects.includes(job.id)).length;
    assert.deepEqual([held.started.length, running()], [4, 1]);
    for (let ended = 0; ended < held.started.length; ended++) {
      held.finish(ended);
      if (ended < 5) await world.eventually("the next one", () => held.started.length > ended + 1);
    }
    await world.until([...suspects, ...others], "completed");
    assert.equal(held.started.length, 6);
  });
});

async function outstandingJobs(world: DispatchWorld): Promise<number> {
  let jobs = 0;
  for (const count of world.outstanding().values()) jobs += count;
  return jobs;
}

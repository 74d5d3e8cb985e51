import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Handler } from "../../../../src/jobs/tasks/task.ts";
import { dispatching, CountedRuns, DispatchWorld, RECEIPT_MS } from "./world.ts";

const logging =
  ({ clock }: DispatchWorld): Handler =>
  async (_payload, { log, progress }) => {
    log("first");
    await clock.sleep(5);
    progress(50);
    log("second");
    await clock.sleep(5);
    log("third");
    return { done: true };
  };

async function messages(world: DispatchWorld, id: Parameters<DispatchWorld["job"]>[0]): Promise<string[]> {
  return (await world.store.jobs.logs(id, 0, 100)).map(({ message }) => message);
}

describe("results of dispatched jobs", () => {
  it("are written by the owner, logs before the end", async (t) => {
    const { world, owner } = await dispatching(t);
    await world.node("worker", { tasks: { work: logging(world) } });
    const [id] = await world.submit(1);
    await world.until([id!], "completed");
    assert.equal(owner.written, 1);
    assert.deepEqual(await messages(world, id!), ["first", "second", "third"]);
    assert.equal(await world.store.jobs.result(id!), '{"done":true}');
    assert.equal((await world.job(id!)).progress, 50);
  });

  it("are in the store after the time for a receipt when nobody owns the assignment", async (t) => {
    const world = await DispatchWorld.open(t);
    await world.lead();
    await world.node("worker", { tasks: { work: logging(world) } });
    const startedAt = world.clock.monotonic();
    const [id] = await world.submit(1);
    await world.until([id!], "completed");
    assert.ok(world.clock.monotonic() - startedAt >= RECEIPT_MS);
    assert.deepEqual((await messages(world, id!)).toSorted(), ["first", "second", "third"]);
    assert.equal(await world.store.jobs.result(id!), '{"done":true}');
  });

  it("go past an owner that was silent once", async (t) => {
    const world = await DispatchWorld.open(t);
    await world.lead();
    const waits = [10, 2 * RECEIPT_MS];
    const work = (): Promise<void> => world.clock.sleep(waits.shift()!);
    const node = await world.node("worker", { tasks: { work } });
    const sent: string[] = [];
    node.channels.fate = (queue) => {
      if (queue.endsWith(".status")) sent.push(queue);
      return "pass";
    };
    await world.until(await world.submit(2), "completed");
    assert.equal(sent.length, 1, "the second one went to the store at once");
  });

  it("stand once when both the owner and the worker write them", async (t) => {
    const { world, owner } = await dispatching(t);
    owner.confirms = false;
    const runs = new CountedRuns(world);
    const work: Handler = (payload, context) => {
      context.log("once");
      return runs.quick(payload, context);
    };
    await world.node("worker", { tasks: { work } });
    const ids = await world.submit(20);
    await world.until(ids, "completed");
    await world.eventually("the worker asks the store", () => world.log.about("no receipt") > 0);
    await world.pass(50);
    runs.assertOnce(ids);
    for (const id of ids) assert.deepEqual(await messages(world, id), ["once"]);
    assert.equal(world.log.about("STALE_EPOCH"), 0);
  });

  it("do not wait for those of a silent owner", async (t) => {
    const { world, owner } = await dispatching(t);
    const runs = new CountedRuns(world);
    const node = await world.node("worker", { tasks: { work: runs.quick } });
    let lost: string | null = null;
    node.channels.fate = (queue) => {
      if (queue.endsWith(".status")) lost ??= queue;
      return queue === lost ? "drop" : "pass";
    };
    const [first] = await world.submit(1);
    await world.eventually("it has run", () => runs.order.length === 1);
    await world.until(await world.submit(20), "completed");
    assert.equal((await world.job(first!)).status, "processing");
    await world.until([first!], "completed");
    assert.equal(owner.written, 20);
  });

  it("reach the store at once when the channels refuse them", async (t) => {
    const { world } = await dispatching(t);
    const runs = new CountedRuns(world);
    const node = await world.node("worker", { tasks: { work: runs.quick } });
    node.channels.fate = (queue) => (queue.endsWith(".status") ? "reject" : "pass");
    const startedAt = world.clock.monotonic();
    const ids = await world.submit(5);
    await world.until(ids, "completed");
    assert.ok(world.clock.monotonic() - startedAt < RECEIPT_MS);
    runs.assertOnce(ids);
  });

  it("are stored before the worker has stopped, owner or not", async (t) => {
    const world = await DispatchWorld.open(t);
    await world.lead();
    const runs = new CountedRuns(world);
    const node = await world.node("worker", { tasks: { work: runs.quick } });
    const ids = await world.submit(5);
    await world.eventually("they have run", () => runs.order.length === 5);
    await world.during(node.worker.stop());
    for (const id of ids) assert.equal((await world.job(id)).status, "completed");
  });
});

import assert from "node:assert/strict";
import { after, beforeEach, describe, test } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { PostgresWorld } from "./postgres-world.ts";
import { gate, message, messages, until } from "./world.ts";

const world = await PostgresWorld.open();
after(() => world.close());
beforeEach(() => world.clear());

async function hints(): Promise<number> {
  return Number((await world.query("SELECT count(*)::int AS n FROM baton.hint"))[0]!["n"]);
}

describe("topics over notifications", () => {
  test("ten thousand messages take far fewer notifications, and arrive in their order", async (t) => {
    const [here, there] = [await world.started(), await world.started()];
    const bodies: unknown[] = [];
    there.subscribe("t", ({ body }) => void bodies.push(body));
    const sent = messages(10_000, 10);
    const from = systemClock.monotonic();
    await Promise.all(sent.map((one) => here.publish("t", [one])));
    await until("all of them", () => bodies.length === sent.length);
    const seconds = (systemClock.monotonic() - from) / 1_000;
    const expected = sent.map(({ body }) => body);
    assert.deepEqual(bodies, expected);
    const { notifies, payloads } = here.counters;
    assert.ok(notifies <= 5, `${notifies} notifications`);
    assert.ok(payloads <= 60, `${payloads} payloads`);
    t.diagnostic(
      `${Math.round(sent.length / seconds)} messages/s in ${notifies} statements with ${payloads} payloads`,
    );
  });

  test("a lone message does not wait for company, nor for a timer", async () => {
    const [here, there] = [await world.started(), await world.started()];
    let heard = 0;
    there.subscribe("t", () => void heard++);
    for (let round = 1; round <= 20; round++) {
      await here.publish("t", [message(round)]);
      await until("the message", () => heard === round);
    }
    assert.equal(here.counters.notifies, 20);
  });

  test("what is private is heard on the channel that nobody else knows, and on no other", async () => {
    const there = await world.started();
    const heard: Record<string, unknown[]> = { "job.given.x": [], t: [] };
    for (const [topic, bodies] of Object.entries(heard))
      there.subscribe(topic, ({ body }) => void bodies.push(body));
    const notify = (channel: string, secret: string, open: string) =>
      world.query(
        `SELECT pg_notify('${channel}', 'sql:0:[["job.given.x","","${secret}"],["t","","${open}"]]')`,
      );
    await notify("baton.hints", "made up", "for all");
    await notify(there.privateChannel!, "for it alone", "misplaced");
    await notify("baton.hints", "made up too", "the last");
    await until("the last", () => heard["t"]!.includes("the last"));
    assert.deepEqual(heard, { "job.given.x": ["for it alone"], t: ["for all", "the last"] });
  });

  test("what is published while a notification is under way goes out with the next one", async () => {
    const here = await world.started();
    const first = here.publish("t", [message(0)]);
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    await Promise.all([first, ...messages(500).map((one) => here.publish("t", [one]))]);
    assert.equal(here.counters.notifies, 2);
  });

  test("bodies of every size arrive in their order, also those that no notification can carry", async () => {
    const [here, there] = [await world.started(), await world.started()];
    const lengths: number[] = [];
    const expected = [10, 7_900, 7_950, 8_000, 20, 8_100, 100_000, 30, 2_000_000, 40];
    there.subscribe("t", ({ key, body }) => {
      assert.equal(key, "\ud83d\ude00");
      assert.ok((body as string[])[0]!.startsWith("\u00e9"));
      lengths.push((body as string[])[0]!.length);
    });
    for (const length of expected) {
      // Not awaited one by one: large and small ones stand in one batch, too.
      void here.publish("t", [message([`\u00e9${"x".repeat(length - 1)}`], "\ud83d\ude00")]);
    }
    await until("all of them", () => lengths.length >= expected.length);
    assert.deepEqual(lengths, expected);
    assert.ok(here.counters.large >= 4);
  });

  test("what is heard while a large message is fetched waits behind it", async () => {
    const [here, there] = [await world.started(), await world.started()];
    const bodies: unknown[] = [];
    there.subscribe("t", ({ body }) => void bodies.push((body as string).slice(0, 2)));
    await here.publish("t", [message(`a${"x".repeat(500_000)}`)]);
    await here.publish("t", [message("b")]);
    await here.publish("t", [message(`c${"x".repeat(500_000)}`), message("d")]);
    await until("all of them", () => bodies.length === 4);
    assert.deepEqual(bodies, ["ax", "b", "cx", "d"]);
  });

  test("large messages are removed after a while, by whoever sends the next or starts", async () => {
    const here = await world.started();
    const large = message("x".repeat(10_000));
    await here.publish("t", [large, large]);
    assert.equal(await hints(), 2);
    await world.query("UPDATE baton.hint SET at = at - 61000");
    await here.publish("t", [large]);
    assert.equal(await hints(), 1);
    await world.query("UPDATE baton.hint SET at = at - 61000");
    await world.started();
    assert.equal(await hints(), 0);
  });

  test("a large message that is gone before it was read is lost, told, and holds nothing up", async () => {
    const warned: string[] = [];
    const log = { info() {}, warn: (_: object, text: string) => void warned.push(text) };
    const [here, there] = [await world.started(), await world.started({ log })];
    const bodies: unknown[] = [];
    there.subscribe("t", ({ body }) => void bodies.push(body));
    // In the place of a row that was removed: a notification whose row never was.
    await world.query(
      `SELECT pg_notify('baton.hints', 'stranger:1:[["t","00000000-0000-4000-8000-000000000000"]]')`,
    );
    await here.publish("t", [message("behind")]);
    await until("the message behind", () => bodies.length === 1);
    assert.deepEqual(warned, ["large messages were gone before they were read"]);
  });

  test("nothing is fetched for a topic that nobody here listens to", async () => {
    const warned: string[] = [];
    const log = { info() {}, warn: (_: object, text: string) => void warned.push(text) };
    const [here, there] = [await world.started(), await world.started({ log })];
    let heard = 0;
    there.subscribe("t", () => void heard++);
    await world.query(
      `SELECT pg_notify('baton.hints', 'stranger:1:[["other","00000000-0000-4000-8000-000000000000"]]')`,
    );
    await here.publish("t", [message(1)]);
    await until("the message", () => heard === 1);
    assert.deepEqual(warned, []);
  });

  test("our own subscribers hear each message once, before the database has it", async () => {
    const here = await world.started();
    const bodies: unknown[] = [];
    here.subscribe("t", ({ body }) => void bodies.push(body));
    const told = here.publish("t", messages(3));
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    assert.deepEqual(bodies, [0, 1, 2]);
    await told;
    // The echo of the second notification comes behind that of the first.
    const there = await world.started();
    const door = gate();
    there.subscribe("done", () => door.open());
    await here.publish("done", [message(null)]);
    await door.passed;
    assert.deepEqual(bodies, [0, 1, 2]);
  });

  test("whatever strangers notify on our channel does no harm", async () => {
    const [here, there] = [await world.started(), await world.started()];
    const bodies: unknown[] = [];
    there.subscribe("t", ({ body }) => void bodies.push(body));
    for (const noise of ["", "hello", "a:1:[[", 'a:1:[["t"],["t",1,2],{},[]]']) {
      await world.query(`SELECT pg_notify('baton.hints', '${noise}')`);
    }
    await here.publish("t", [message("ours")]);
    await until("our message", () => bodies.length === 1);
    assert.deepEqual(bodies, ["ours"]);
  });
});

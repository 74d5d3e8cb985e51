import assert from "node:assert/strict";
import { after, afterEach, describe, test } from "node:test";
import { hasCode } from "../../../../../src/core/errors.ts";
import { systemClock } from "../../../../../src/platform/clock.ts";
import { read, write } from "../../../../../src/platform/drivers/postgres/postgres.ts";
import {
  PostgresSession,
  type PostgresSessionOptions,
} from "../../../../../src/platform/drivers/postgres/session.ts";
import { ManualClock } from "../../../../support/manual-clock.ts";
import { systemRandom } from "../../../../../src/platform/random.ts";
import { lifecycleStress } from "../../../../support/lifecycle-stress.ts";
import { PostgresServer } from "../../../../support/postgres-server.ts";
import { TcpProxy } from "../../../../support/tcp-proxy.ts";
import { eventually } from "../../../../support/wait.ts";

const ANSWER = read("session-test-answer", "SELECT 42 AS answer");
const PID = read("session-test-pid", "SELECT pg_backend_pid() AS pid");
const LISTEN = write("session-test-listen", 'LISTEN "the channel"');
const LOCK = write("session-test-lock", "SELECT pg_advisory_lock(7)");
const SLOW = read("session-test-slow", "SELECT pg_sleep(60)");

const server = await PostgresServer.start();
const proxy = await TcpProxy.start(server.url("postgres"));
after(async () => {
  await proxy.stop();
  await server.stop();
});

const opened = new Set<PostgresSession>();
afterEach(async () => {
  await proxy.forward();
  proxy.reset();
  await Promise.all([...opened].map((session) => session.stop()));
  opened.clear();
});

function create(options: Partial<PostgresSessionOptions> = {}): PostgresSession {
  const session = new PostgresSession({
    url: server.url("postgres"),
    clock: systemClock,
    random: systemRandom,
    applicationName: "session-test",
    ...options,
  });
  opened.add(session);
  return session;
}

async function open(options: Partial<PostgresSessionOptions> = {}): Promise<PostgresSession> {
  const session = create(options);
  await session.start();
  return session;
}

async function pid(session: PostgresSession): Promise<number> {
  return (await session.query<{ pid: number }>(PID))[0]!.pid;
}

async function terminate(session: PostgresSession): Promise<void> {
  await server.query(`SELECT pg_terminate_backend(${await pid(session)})`);
}

async function backends(): Promise<number> {
  const [row] = await server.query(
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'session-test'",
  );
  return Number(row!["n"]);
}

const unavailable = (error: unknown): boolean => hasCode(error, "STORE_UNAVAILABLE");

/** Milliseconds until a promise settled, whichever way. */
async function timed(work: Promise<unknown>): Promise<number> {
  const from = systemClock.monotonic();
  await work.catch(() => {});
  return systemClock.monotonic() - from;
}

describe("a session of PostgreSQL", () => {
  test("is set up before anybody else's statement, and then answers", async () => {
    const order: string[] = [];
    const session = create({
      onOpen: async (queryable) => {
        assert.deepEqual(await queryable.query(ANSWER), [{ answer: 42 }]);
        await assert.rejects(session.query(ANSWER), unavailable);
        order.push(session.open ? "open too early" : "set up");
      },
    });
    await session.start();
    order.push(session.open ? "open" : "not open");
    assert.deepEqual(order, ["set up", "open"]);
    assert.deepEqual(await session.query(ANSWER), [{ answer: 42 }]);
  });

  test("sends statements one behind the other without waiting for answers", async () => {
    const session = await open();
    const pids = await Promise.all(Array.from({ length: 200 }, () => pid(session)));
    assert.equal(new Set(pids).size, 1);
  });

  test("tells at once that its connection broke, and sets the next one up again", async () => {
    let setUps = 0;
    const lost: unknown[] = [];
    const session = await open({
      onOpen: async () => void setUps++,
      onLost: (reason) => {
        assert.equal(session.open, false, "open although it is lost");
        lost.push(reason);
      },
    });
    for (let round = 1; round <= 3; round++) {
      const before = await pid(session);
      await terminate(session);
      await eventually("the loss", () => lost.length === round);
      assert.match(String(lost.at(-1)), /terminat/);
      await eventually("another connection", () => session.open);
      assert.equal(setUps, round + 1);
      assert.notEqual(await pid(session), before);
    }
  });

  test("fails a statement whose connection breaks with STORE_UNAVAILABLE", async () => {
    const session = await open();
    const victim = await pid(session);
    const failing = Promise.all([
      assert.rejects(session.query(SLOW), unavailable),
      assert.rejects(session.query(ANSWER), unavailable),
    ]);
    await server.query(`SELECT pg_terminate_backend(${victim})`);
    await failing;
  });

  test("destroys a connection whose statement misses its deadline, and opens another", async () => {
    let losses = 0;
    const session = await open({ onLost: () => losses++ });
    const before = await pid(session);
    await assert.rejects(session.query(SLOW, [], { deadlineMs: 50 }), /no answer within 50 ms/);
    assert.equal(losses, 1);
    await eventually("another connection", () => session.open);
    assert.notEqual(await pid(session), before);
  });

  test("takes an answer that came in time and was only read late, because this thread was held up", async () => {
    const session = await open({ statementMs: 100, onLost: () => assert.fail("nothing is lost") });
    const held = await pid(session);
    const asked = session.query(ANSWER);
    await new Promise((resolve) => process.nextTick(resolve)); // sent, and nothing read yet
    const until = systemClock.monotonic() + 250;
    while (systemClock.monotonic() < until);
    assert.deepEqual(await asked, [{ answer: 42 }]);
    assert.equal(await pid(session), held);
  });

  test("keeps its connection when a statement is merely wrong", async () => {
    const session = await open();
    const before = await pid(session);
    await assert.rejects(session.query(read("session-test-wrong", "SELECT 1 / 0")), /division by zero/);
    assert.equal(await pid(session), before);
  });

  test("tells by the deadline of the passed clock, and waits without one when told so", async () => {
    const clock = new ManualClock();
    const session = await open({ clock, statementMs: 5_000 });
    const holder = await open();
    await holder.query(LOCK);
    let state = "waits";
    const lock = session.query(LOCK, [], { deadlineMs: null }).then(() => (state = "has it"));
    await clock.advance(3_600_000);
    assert.equal(state, "waits");
    await holder.stop();
    await lock;
    assert.equal(clock.waiting, 0, "a deadline was left behind");
  });

  test("gives its connection up when told, with what the server keeps for it", async () => {
    const reasons: unknown[] = [];
    const session = await open({ onLost: (reason) => reasons.push(reason) });
    await session.query(LOCK);
    const waiting = session.query(SLOW, [], { deadlineMs: null });
    session.reset("deaf");
    await assert.rejects(waiting, (error) => unavailable(error) && /deaf/.test(String(error)));
    await eventually("the loss", () => reasons.length === 1);
    const other = await open();
    await other.query(LOCK);
    await eventually("another connection", () => session.open);
  });

  test("hears notifications, also after its connection was replaced", async () => {
    const heard: string[] = [];
    const session = await open({
      onOpen: async (queryable) => void (await queryable.query(LISTEN)),
      onNotification: (channel, payload) => heard.push(`${channel}: ${payload}`),
    });
    await server.query(`SELECT pg_notify('the channel', 'one')`);
    await eventually("the first notification", () => heard.length === 1);
    const former = await pid(session);
    await terminate(session);
    await eventually("another connection", async () => (await pid(session).catch(() => former)) !== former);
    await server.query(`SELECT pg_notify('the channel', 'two \u00e9')`);
    await eventually("the second notification", () => heard.length === 2);
    assert.deepEqual(heard, ["the channel: one", "the channel: two \u00e9"]);
  });

  test("comes back by itself after the server was restarted", async () => {
    let losses = 0;
    const session = await open({ onLost: () => losses++ });
    await server.halt("fast");
    await eventually("the loss", () => losses === 1);
    await assert.rejects(session.query(ANSWER), unavailable);
    await server.relaunch();
    await eventually("another connection", () => session.open);
    assert.deepEqual(await session.query(ANSWER), [{ answer: 42 }]);
    assert.equal(losses, 1, "attempts that failed were told as losses");
  });

  test("tries again when its set-up fails", async () => {
    let tries = 0;
    const session = await open({
      onOpen: () => (++tries === 2 ? Promise.reject(new Error("not now")) : Promise.resolve()),
    });
    await terminate(session);
    await eventually("a third set-up", () => tries === 3 && session.open);
  });

  test("does not start when the set-up fails, and leaves no connection", async () => {
    const session = create({ onOpen: () => Promise.reject(new Error("not now")) });
    await assert.rejects(session.start(), /not now/);
    await eventually("no connection", async () => (await backends()) === 0);
  });
});

describe("a session of a server that cannot be reached", () => {
  test("does not start when it is refused", async () => {
    await proxy.refuse();
    const session = create({ url: proxy.through(server.url("postgres")) });
    await assert.rejects(session.start(), unavailable);
    await proxy.forward();
    await session.start();
    assert.deepEqual(await session.query(ANSWER), [{ answer: 42 }]);
  });

  test("does not start when nothing is answered, and says so within its deadline", async () => {
    await proxy.freeze();
    const session = create({ url: proxy.through(server.url("postgres")), connectMs: 200 });
    const starting = session.start();
    assert.ok((await timed(starting)) < 1_000);
    await assert.rejects(starting, /no answer within 200 ms/);
  });

  test("says which credentials are wrong", async () => {
    const session = create({ url: server.url("no_such_database") });
    await assert.rejects(session.start(), { code: "BAD_CONFIG", message: /no_such_database/ });
  });

  test("notices a connection that takes what is sent and never answers", async () => {
    const session = await open({ url: proxy.through(server.url("postgres")), statementMs: 200 });
    await proxy.freeze("down");
    await assert.rejects(session.query(ANSWER), /no answer within 200 ms/);
    assert.equal(session.open, false);
    await proxy.forward();
    await eventually("another connection", () => session.open);
    assert.deepEqual(await session.query(ANSWER), [{ answer: 42 }]);
  });
});

describe("the stop of a session", () => {
  test("does not wait for a server that does not answer while connecting", async () => {
    const session = await open({ url: proxy.through(server.url("postgres")), connectMs: 60_000 });
    await proxy.freeze();
    proxy.reset();
    await eventually("an attempt that hangs", () => !session.open && proxy.connections === 1);
    assert.ok((await timed(session.stop())) < 1_000);
  });

  test("does not wait for a half-open connection either", async () => {
    const session = await open({ url: proxy.through(server.url("postgres")) });
    await proxy.freeze();
    assert.ok((await timed(session.stop())) < 2_000);
  });

  test("does not wait for a lock, and the server drops the request soon", async () => {
    const holder = await open();
    await holder.query(LOCK);
    const session = await open({ onLost: () => assert.fail("a stop is no loss") });
    const lock = session.query(LOCK, [], { deadlineMs: null });
    const refused = assert.rejects(lock, (error) => hasCode(error, "STOPPED"));
    assert.ok((await timed(session.stop())) < 1_000);
    await refused;
    await eventually("one connection left", async () => (await backends()) === 1);
  });

  test("leaves nothing behind after a hundred lives", async () => {
    const sockets = (): number =>
      process.getActiveResourcesInfo().filter((kind) => kind === "TCPSocketWrap").length;
    const before = sockets();
    const session = create();
    for (let life = 0; life < 100; life++) {
      await session.start();
      await session.query(ANSWER);
      await session.stop();
    }
    await eventually("no connection", async () => (await backends()) === 0);
    await eventually("no socket more than before", () => sockets() <= before);
  });

  lifecycleStress("a session", async () => ({
    service: create(),
    works: async (session) => void (await session.query(ANSWER)),
  }));
});

import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, describe, test } from "node:test";
import { promisify } from "node:util";
import { BatonError, hasCode } from "../../../../../src/core/errors.ts";
import { systemClock } from "../../../../../src/platform/clock.ts";
import { redisScript } from "../../../../../src/platform/drivers/redis/connection.ts";
import { RedisSession, type RedisSessionOptions } from "../../../../../src/platform/drivers/redis/session.ts";
import { parseRedisUrl } from "../../../../../src/platform/drivers/server-url.ts";
import { checkRedis, Redis, type RedisOptions } from "../../../../../src/platform/drivers/redis/redis.ts";
import { ManualClock } from "../../../../support/manual-clock.ts";
import { systemRandom } from "../../../../../src/platform/random.ts";
import { lifecycleStress } from "../../../../support/lifecycle-stress.ts";
import { freePort } from "../../../../support/free-port.ts";
import { RedisServer } from "../../../../support/redis-server.ts";
import { TcpProxy } from "../../../../support/tcp-proxy.ts";
import { eventually } from "../../../../support/wait.ts";

const server = await RedisServer.start();
const proxy = await TcpProxy.start(server.url());
after(async () => {
  await proxy.stop();
  await server.stop();
});

const opened = new Set<RedisSession>();
afterEach(async () => {
  await proxy.forward();
  proxy.reset();
  await Promise.all([...opened].map((session) => session.stop()));
  opened.clear();
});

interface Given extends Partial<RedisSessionOptions> {
  readonly url?: string;
}

function create({ url = server.url(), ...options }: Given = {}): RedisSession {
  const address = parseRedisUrl(url);
  const session = new RedisSession({ address, clock: systemClock, random: systemRandom, ...options });
  opened.add(session);
  return session;
}

async function open(options: Given = {}): Promise<RedisSession> {
  const session = create(options);
  await session.start();
  return session;
}

const through = (): string => proxy.through(server.url());

async function failure(work: Promise<unknown>): Promise<BatonError> {
  const error: unknown = await work.then(
    () => assert.fail("it was answered"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof BatonError, String(error));
  return error;
}

const outcomeOf = async (work: Promise<unknown>): Promise<unknown> => {
  const error = await failure(work);
  assert.equal(error.code, "STORE_UNAVAILABLE", error.message);
  return error.details["outcome"];
};

describe("a session of Redis", () => {
  test("answers come as RESP3 has them", async () => {
    const session = await open();
    assert.equal(await session.send(["GET", "nothing"]), null);
    await session.send(["HSET", "map", "a", "1"]);
    assert.deepEqual({ ...(await session.send<object>(["HGETALL", "map"])) }, { a: "1" });
  });

  test("a command that is not answered in time is rejected as unknown, and the connection is another one afterwards", async () => {
    const lost: unknown[] = [];
    const session = await open({ url: through(), commandMs: 100, onLost: (reason) => lost.push(reason) });
    const first = await session.send<number>(["CLIENT", "ID"]);
    await proxy.freeze();
    const startedAt = systemClock.monotonic();
    const slow = session.send(["PING"]);
    const behind = session.send(["PING"], { deadlineMs: 60_000 });
    assert.equal(await outcomeOf(slow), "unknown");
    assert.ok(systemClock.monotonic() - startedAt < 30_000);
    assert.equal(await outcomeOf(behind), "unknown", "whatever waits behind it shares its fate");
    assert.match(String(lost[0]), /no answer within 100 ms/);
    assert.equal(await outcomeOf(session.send(["PING"])), "not_done");
    await proxy.forward();
    await eventually("open again", () => session.open);
    assert.notEqual(await session.send<number>(["CLIENT", "ID"]), first);
  });

  test("a blocking read may take longer than other commands", async () => {
    const session = await open({ commandMs: 50 });
    const started = systemClock.monotonic();
    assert.equal(await session.send(["BLPOP", "no-such-list", "0.3"], { deadlineMs: 2_000 }), null);
    assert.ok(systemClock.monotonic() - started >= 290);
    assert.equal(await session.send(["PING"]), "PONG");
  });

  test("nothing is sent twice, nor kept for later", async () => {
    const session = await open({ url: through(), commandMs: 10_000 });
    await server.command("DEL", "counter");
    await proxy.freeze("down");
    const counted = outcomeOf(session.send(["INCR", "counter"]));
    await eventually("it has arrived", async () => (await server.command("GET", "counter")) === "1");
    await proxy.refuse();
    assert.equal(await counted, "unknown");
    for (let i = 0; i < 5; i++) assert.equal(await outcomeOf(session.send(["INCR", "counter"])), "not_done");
    await proxy.forward();
    await eventually("open again", () => session.open);
    await session.send(["PING"]);
    assert.equal(await server.command("GET", "counter"), "1");
  });

  test("subscriptions and what onOpen set up are there again on each new connection, before it counts as open", async () => {
    const heard: string[] = [];
    const openWhileSettingUp: boolean[] = [];
    let ready = 0;
    const session = create({
      url: through(),
      channels: ["news", "weather"],
      onMessage: (channel, message) => heard.push(`${channel}: ${message}`),
      onOpen: async (commands) => {
        openWhileSettingUp.push(session.open);
        await commands.send(["CLIENT", "SETNAME", "set-up"]);
      },
      onReady: () => (ready += 1),
    });
    await session.start();
    for (let life = 1; life <= 3; life++) {
      await eventually("open", () => session.open && ready === life);
      assert.equal(await session.send(["CLIENT", "GETNAME"]), "set-up");
      assert.equal(await server.command("PUBLISH", "weather", `fair ${life}`), 1);
      await eventually("heard", () => heard.length === life);
      proxy.reset();
      await eventually("lost", () => !session.open || ready > life);
    }
    assert.deepEqual(heard, ["weather: fair 1", "weather: fair 2", "weather: fair 3"]);
    assert.ok(openWhileSettingUp.every((open) => !open));
  });

  test("a connection whose set-up fails is given up, and the start says why", async () => {
    const failing = create({ onOpen: () => Promise.reject(new Error("no")) });
    assert.match((await failure(failing.start())).message, /no/);
    const name = `fails-${systemRandom.uuid()}`;
    const session = create({ name, onOpen: () => Promise.reject(new Error("no")) });
    await failure(session.start());
    await eventually("no connection is left", async () => {
      const list = await server.command<string>("CLIENT", "LIST");
      return !list.includes(name);
    });
  });

  test("a script is sent by its digest, and in full to a server that does not know it", async () => {
    const session = await open();
    const sum = redisScript("sum", `return tonumber(ARGV[1]) + tonumber(ARGV[2]) -- ${systemRandom.uuid()}`);
    assert.equal(await session.run(sum, [], [1, "2"]), 3);
    assert.deepEqual(await session.send(["SCRIPT", "EXISTS", sum.digest]), [1]);
    await server.command("SCRIPT", "FLUSH");
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => session.run(sum, [], [i, i])));
    const expected = Array.from({ length: 20 }, (_, i) => 2 * i);
    assert.deepEqual(all, expected);
  });

  test("what the server refuses is passed on as it is, or as what it means", async () => {
    const session = await open();
    await session.send(["SET", "text", "x"]);
    await assert.rejects(session.send(["INCR", "text"]), /not an integer/);
    await assert.rejects(session.send(["NO-SUCH-COMMAND"]), /unknown command/);
    assert.equal(session.open, true);
  });

  test("a server that became a replica is left, and the command was not done", async () => {
    const own = await RedisServer.start();
    try {
      let lost = 0;
      const session = await open({ url: own.url(), onLost: () => (lost += 1) });
      await own.command("REPLICAOF", "127.0.0.1", String(server.port));
      assert.equal(await outcomeOf(session.send(["SET", "a", "b"])), "not_done");
      assert.equal(lost, 1);
      const redis = new Redis({ url: own.url(), clock: systemClock, random: systemRandom });
      const replica = await open({ url: own.url() });
      const error = await failure(checkRedis(replica, redis.shown));
      assert.ok(hasCode(error, "BAD_CONFIG"));
      assert.match(error.message, /replica.*primary/);
    } finally {
      await own.stop();
    }
  });

  test("a stop does not wait for a silent server, nor for one that is being connected to", async () => {
    const deaf = createServer(() => {});
    await new Promise<void>((resolve) => deaf.listen(0, "127.0.0.1", resolve));
    const { port } = deaf.address() as { port: number };
    const session = await open({ url: through(), commandMs: 60_000, connectMs: 60_000 });
    await proxy.freeze();
    const waiting = outcomeOf(session.send(["PING"]));
    proxy.reset();
    await systemClock.sleep(50);
    const startedAt = systemClock.monotonic();
    await session.stop();
    assert.ok(systemClock.monotonic() - startedAt < 30_000);
    assert.equal(await waiting, "unknown");
    const late = create({ url: `redis://127.0.0.1:${port}`, connectMs: 100 });
    assert.match((await failure(late.start())).message, /no answer within 100 ms/);
    deaf.close();
    deaf.unref();
  });

  test("nobody listens there: the start says so, and is tried again by whoever wants", async () => {
    const session = create({ url: "redis://127.0.0.1:1" });
    const error = await failure(session.start());
    assert.equal(error.code, "STORE_UNAVAILABLE");
    assert.match(error.message, /ECONNREFUSED/);
  });

  test("deadlines are the given clock's", async () => {
    const clock = new ManualClock();
    const session = await open({ url: through(), clock, commandMs: 30_000 });
    await proxy.freeze();
    const asked = outcomeOf(session.send(["PING"]));
    let over = false;
    void asked.then(() => (over = true));
    await clock.advance(29_000);
    assert.equal(over, false);
    await clock.advance(1_001);
    assert.equal(await asked, "unknown");
  });

  lifecycleStress("session of Redis", async () => ({
    service: create(),
    works: async (session) => assert.equal(await session.send(["PING"]), "PONG"),
  }));
});

describe("Redis as a cluster uses it", () => {
  const client = (options: Partial<RedisOptions> = {}): RedisSession => {
    const redis = new Redis({ url: server.url(), clock: systemClock, random: systemRandom, ...options });
    const session = redis.session();
    opened.add(session);
    return session;
  };

  test("password and database of the URL are used", async () => {
    const own = await RedisServer.start({ password: "p@ss w%rd" });
    try {
      const redis = client({ url: own.url(5), name: "baton/one/ada" });
      await redis.start();
      assert.match(await redis.send<string>(["CLIENT", "INFO"]), /name=baton\/one\/ada .*db=5/);
      for (const url of [`redis://127.0.0.1:${own.port}`, `redis://:wrong@127.0.0.1:${own.port}`]) {
        const error = await failure(client({ url }).start());
        assert.ok(hasCode(error, "BAD_CONFIG"), String(error));
        assert.match(error.message, /check user and password/);
      }
    } finally {
      await own.stop();
    }
  });

  test("rediss speaks TLS, and believes only certificates that the machine trusts", async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "baton-tls-"));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const [key, cert] = [join(dir, "key.pem"), join(dir, "cert.pem")];
    const made = spawnSync(
      "openssl",
      `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 -keyout ${key} -out ${cert}`.split(
        " ",
      ),
    );
    if (made.status !== 0) return t.skip("no openssl here to make a certificate with");
    const own = await RedisServer.start({
      settings: [
        ["tls-cert-file", cert],
        ["tls-key-file", key],
        ["tls-ca-cert-file", cert],
        ["tls-auth-clients", "no"],
      ],
    });
    try {
      const tlsPort = String(await freePort());
      await own.command("CONFIG", "SET", "tls-port", tlsPort);
      const url = `rediss://127.0.0.1:${tlsPort}`;
      const error = await failure(client({ url }).start());
      assert.match(error.message, /self-signed certificate/);
      const module = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);
      const script = `
        import { Redis } from ${module("../../../../../src/platform/drivers/redis/redis.ts")};
        import { systemClock } from ${module("../../../../../src/platform/clock.ts")};
        import { systemRandom } from ${module("../../../../../src/platform/random.ts")};
        const redis = new Redis({ url: ${JSON.stringify(url)}, clock: systemClock, random: systemRandom }).session();
        await redis.start();
        console.log(await redis.send(["PING"]));
        await redis.stop();`;
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ["--input-type=module", "--eval", script],
        { env: { ...process.env, NODE_EXTRA_CA_CERTS: cert } },
      );
      assert.equal(stdout, "PONG\n");
    } finally {
      await own.stop();
    }
  });
});

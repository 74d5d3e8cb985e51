import assert from "node:assert/strict";
import { after, afterEach, beforeEach, describe, test } from "node:test";
import type { PostgresChannels, PostgresChannelsOptions } from "../../../src/channels/postgres/channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { PostgresWorld } from "./postgres-world.ts";
import { givesUpSilence, losesNothing, refusesWhileAway } from "./served-faults.ts";
import { Watched } from "./served-world.ts";
import { message, until } from "./world.ts";

const server = await PostgresServer.start();
const world = await PostgresWorld.open(server);
const proxy = await TcpProxy.start(world.url);
after(async () => {
  await proxy.stop();
  await world.close();
});
beforeEach(() => world.clear());
afterEach(() => proxy.forward());

/** Channels behind the proxy that probe often, and what they said. */
function watched(options: Partial<PostgresChannelsOptions> = {}): Promise<Watched<PostgresChannels>> {
  const often = { probeMs: 20, answerMs: 300, statementMs: 1_000, connectMs: 1_000 };
  const url = proxy.through(world.url);
  return new Watched((watch) =>
    world.channels({ url, applicationName: "watched", ...often, ...watch, ...options }),
  ).start();
}

interface Backend {
  readonly pid: number;
  readonly client_port: number;
}

async function listening(): Promise<Backend> {
  const rows = await world.query(
    "SELECT pid, client_port FROM pg_stat_activity WHERE application_name = 'watched' AND query LIKE 'LISTEN%'",
  );
  assert.equal(rows.length, 1);
  return rows[0] as unknown as Backend;
}

describe("a connection for notifications", () => {
  test("that is half open is noticed by the probe, replaced, and the gap is told", async () => {
    const other = await world.started();
    const node = await watched();
    await node.hears(other, "before");
    proxy.freezeOne((await listening()).client_port);
    const lost = systemClock.monotonic();
    await until("the gap to be told", () => node.gaps === 1);
    assert.ok(systemClock.monotonic() - lost < 5_000);
    await node.hears(other, "after");
    assert.deepEqual(node.warned, [
      "the connection for notifications is deaf; opening another",
      "notifications are not heard at the moment",
    ]);
    assert.equal(node.channels.counters.deaf, 1);
    assert.equal(node.channels.counters.gaps, 1);
  });

  test("whose backend is ended is replaced at once, and the gap is told when it hears again", async () => {
    const other = await world.started();
    const node = await watched({ probeMs: 60_000 });
    for (let round = 1; round <= 3; round++) {
      const { pid } = await listening();
      await world.query(`SELECT pg_terminate_backend(${pid})`);
      await until("the gap to be told", () => node.gaps === round);
      // LISTEN is there when the gap is told: whoever looks into the store then misses nothing later.
      await other.publish("t", [message(round)]);
      await until("the message behind the gap", () => node.heard.length === round);
    }
    assert.deepEqual(node.heard, [1, 2, 3]);
    assert.equal(node.channels.counters.deaf, 0);
  });

  test("that works is left alone, also when this process stands still for longer than an answer may take", async () => {
    // Not through the proxy, which stands still with us and needs turns of its own afterwards.
    const node = await watched({ url: world.url, probeMs: 1, answerMs: 300 });
    const still = new Int32Array(new SharedArrayBuffer(4));
    for (let round = 0; round < 5; round++) {
      const { notifies } = node.channels.counters;
      await until("another probe", () => node.channels.counters.notifies > notifies);
      Atomics.wait(still, 0, 0, 500);
    }
    const { notifies } = node.channels.counters;
    await until("more probes", () => node.channels.counters.notifies >= notifies + 3);
    assert.deepEqual([node.gaps, node.warned], [0, []]);
  });

  test("is not blamed when it is the other one that fails", async () => {
    const node = await watched({ probeMs: 5 });
    const { pid } = await listening();
    for (let round = 0; round < 5; round++) {
      await world.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'watched' AND pid <> ${pid}`,
      );
      const { notifies } = node.channels.counters;
      await until("probes to come through again", () => node.channels.counters.notifies > notifies + 1);
    }
    assert.equal((await listening()).pid, pid);
    assert.equal(node.gaps, 0);
  });
});

describe("channels whose database is away", () => {
  test("refuse what others could not hear of, tell our own subscribers, and heal by themselves", async () => {
    const node = await watched();
    await refusesWhileAway(node, await world.started(), proxy, "notifications are not heard at the moment");
    assert.ok(node.gaps >= 1, "the gap is told");
  });

  test("say so within the deadline when the server no longer answers, and can be stopped then", async () =>
    givesUpSilence(await watched({ statementMs: 200, probeMs: 60_000 }), proxy));

  test("go on after a restart of the server, with every message that was sent", async () => {
    const [here, there] = [await world.started({ leaseMs: 500 }), await world.started({ leaseMs: 500 })];
    await losesNothing(here, there, 1, async () => {
      await server.halt("fast");
      await server.relaunch();
    });
  });
});

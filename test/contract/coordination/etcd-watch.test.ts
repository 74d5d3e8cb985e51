/** The stream that reports releases, and what happens when it breaks. */

import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { ControlSession } from "../../../src/leadership/etcd/control-session.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { EtcdServer } from "../../support/etcd-server.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { eventually } from "../../support/wait.ts";

async function watching(t: TestContext) {
  const server = await EtcdServer.start();
  const proxy = await TcpProxy.start(server.url());
  const url = proxy.through(server.url());
  const seen = { opened: 0, events: [] as string[] };
  const session = new ControlSession({
    url,
    prefix: "test",
    commandMs: 1_000,
    clock: systemClock,
    time: systemClock,
    random: systemRandom,
    onReady: () => void (seen.opened += 1),
    onLeader: ({ key, deleted }) => void seen.events.push(`${deleted ? "-" : "+"}${key}`),
  });
  t.after(async () => {
    await session.stop();
    await proxy.stop();
    await server.stop();
  });
  await session.start();
  return { server, proxy, seen };
}

void test("what is written and deleted in the folder is reported in order, and nothing else", async (t) => {
  const { server, seen } = await watching(t);
  assert.equal(seen.opened, 1);
  await server.put("test/leader/a", "1");
  await server.put("test/leaders", "1");
  await server.put("test/leader/b", "1");
  await server.remove("test/leader/a");
  await eventually("three events", () => seen.events.length === 3);
  assert.deepEqual(seen.events, ["+test/leader/a", "+test/leader/b", "-test/leader/a"]);
});

void test("a stream that broke is opened again, and so is one after a restart of etcd", async (t) => {
  const { server, proxy, seen } = await watching(t);
  proxy.reset();
  await eventually("opened again", () => seen.opened === 2);
  await server.halt();
  await server.relaunch();
  await eventually("opened a third time", () => seen.opened === 3);
  await server.put("test/leader/a", "1");
  await eventually("an event", () => seen.events.length === 1);
});

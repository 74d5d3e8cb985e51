/** The stream that reports releases, and what happens when it breaks. */

import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Gateway } from "../../../src/leadership/etcd/gateway.ts";
import { WatchStream } from "../../../src/leadership/etcd/watch-stream.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { EtcdServer } from "../../support/etcd-server.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { eventually } from "../../support/wait.ts";

async function watching(t: TestContext) {
  const server = await EtcdServer.start();
  const proxy = await TcpProxy.start(server.url());
  const url = proxy.through(server.url());
  const options = { url, clock: systemClock, random: systemRandom, commandMs: 1_000 };
  const gateway = new Gateway(options);
  const seen = { opened: 0, events: [] as string[] };
  const stream = new WatchStream(
    options,
    gateway,
    "test/folder/",
    () => void (seen.opened += 1),
    ({ key, deleted }) => void seen.events.push(`${deleted ? "-" : "+"}${key}`),
  );
  t.after(async () => {
    await stream.stop();
    await gateway.stop();
    await proxy.stop();
    await server.stop();
  });
  await gateway.start();
  await stream.start();
  return { server, proxy, seen };
}

void test("what is written and deleted in the folder is reported in order, and nothing else", async (t) => {
  const { server, seen } = await watching(t);
  assert.equal(seen.opened, 1);
  await server.put("test/folder/a", "1");
  await server.put("test/folders", "1");
  await server.put("test/folder/b", "1");
  await server.remove("test/folder/a");
  await eventually("three events", () => seen.events.length === 3);
  assert.deepEqual(seen.events, ["+test/folder/a", "+test/folder/b", "-test/folder/a"]);
});

void test("a stream that broke is opened again, and so is one after a restart of etcd", async (t) => {
  const { server, proxy, seen } = await watching(t);
  proxy.reset();
  await eventually("opened again", () => seen.opened === 2);
  await server.halt();
  await server.relaunch();
  await eventually("opened a third time", () => seen.opened === 3);
  await server.put("test/folder/a", "1");
  await eventually("an event", () => seen.events.length === 1);
});

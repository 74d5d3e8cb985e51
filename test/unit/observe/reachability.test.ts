import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { httpProbe, reachability } from "../../../src/observe/reachability.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import type { NodeInfo } from "../../../src/core/node.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { ManualClock } from "../../support/manual-clock.ts";

function node(name: string, over: Partial<NodeInfo> = {}): NodeInfo {
  const url = `http://${name}:8420`;
  return { name: name as NodeName, incarnation: `${name}-1`, alive: true, url, ...over } as NodeInfo;
}

describe("whom a node reaches", () => {
  it("is looked at every few seconds, of the living, and forgotten at a stop", async () => {
    const clock = new ManualClock();
    const asked: string[] = [];
    const nodes = [node("a"), node("b"), node("c", { url: null }), node("d", { alive: false }), node("e")];
    const identity = { name: "a" as NodeName, incarnation: "a-1" };
    const reach = reachability({ clock, identity }, () => nodes, {
      ask: async (url) => {
        asked.push(url);
        return url.includes("e:") ? "ECONNREFUSED" : null;
      },
      close: async () => {},
    });
    await reach.start();
    assert.deepEqual(reach.read(), []);
    await clock.advance(5_000);
    assert.deepEqual(asked, ["http://b:8420/livez", "http://e:8420/livez"]);
    assert.deepEqual(reach.read(), [
      { node: "b", ok: true, latencyMs: 0, reason: null },
      { node: "c", ok: false, latencyMs: null, reason: "it tells no address" },
      { node: "e", ok: false, latencyMs: null, reason: "ECONNREFUSED" },
    ]);
    await reach.stop();
    assert.deepEqual(reach.read(), []);
  });

  it("is asked in turn where there are many", async () => {
    const clock = new ManualClock();
    const asked = new Set<string>();
    const nodes = Array.from({ length: 51 }, (_, n) => node(`n${n}`));
    const probe = {
      ask: async (url: string) => {
        asked.add(url);
        return null;
      },
      close: async () => {},
    };
    const identity = { name: "n0" as NodeName, incarnation: "n0-1" };
    const reach = reachability({ clock, identity }, () => nodes, probe);
    await reach.start();
    await clock.advance(5_000);
    assert.equal(asked.size, 20);
    await clock.advance(15_000);
    assert.equal(asked.size, 50);
    await reach.stop();
  });
});

describe("a probe", () => {
  it("tells an answer from none, and from one that takes too long", async (t) => {
    const server = createServer((request, response) => {
      if (request.url === "/livez") response.writeHead(503).end("no");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    t.after(() => server.closeAllConnections());
    const { port } = server.address() as AddressInfo;
    const probe = httpProbe(systemClock);
    t.after(() => probe.close());
    assert.equal(await probe.ask(`http://127.0.0.1:${port}/livez`, 2_000), null, "any answer will do");
    assert.equal(await probe.ask(`http://127.0.0.1:${port}/silent`, 50), "no answer within 50 ms");
    assert.equal(await probe.ask("http://127.0.0.1:1/livez", 2_000), "ECONNREFUSED");
  });
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { MountedHttp } from "../../../src/http/mounted-http.ts";
import type { Principal } from "../../../src/core/access/permissions.ts";
import { silentLog } from "../../../src/platform/log.ts";
import { atEnd } from "../../support/node-cleanup.ts";
import { executorOf, FakeNode } from "./fake-node.ts";

const ANN: Principal = { kind: "application", name: "ann", permission: "read", id: null };

describe("the app in a server of others", () => {
  it("ends what goes on for long after a minute, so that readers are authenticated again", async (t) => {
    const node = new FakeNode();
    const { clock } = node;
    const mounted = new MountedHttp(
      { clock, log: silentLog },
      { executor: executorOf(node), bodyLimitBytes: 1_000, required: "auto" },
    );
    const server = createServer((request, response) => {
      const caller = { principal: ANN, address: "192.0.2.1", body: null, stays: () => true };
      void mounted.handle(request, response, caller);
    });
    await mounted.start();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    atEnd(t, async () => {
      await mounted.stop();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const response = await fetch(`http://127.0.0.1:${port}/cluster/live`);
    assert.equal(response.status, 200);
    let ended = false;
    const reading = response.text().then((text) => {
      ended = true;
      return text;
    });
    await clock.advance(59_000);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(ended, false);
    await clock.advance(4_000);
    assert.match(await reading, /^event: /m);
  });
});

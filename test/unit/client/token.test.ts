import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { it } from "node:test";
import { BatonClient } from "../../../src/client/baton-client.ts";
import { atEnd } from "../../support/node-cleanup.ts";

it("a client shows the token of the environment, another one, or with null none", async (t) => {
  const shown: (string | undefined)[] = [];
  const server = createServer(({ headers }, response) => {
    shown.push(headers.authorization);
    response.setHeader("content-type", "application/json").end("{}");
  }).listen(0, "127.0.0.1");
  atEnd(t, () => server.close());
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const before = process.env["BATON_TOKEN"];
  process.env["BATON_TOKEN"] = "of-all";
  try {
    for (const options of [{}, { token: "own" }, { token: null }]) {
      const client = new BatonClient({ url, discover: false, ...options });
      await client.status();
      await client.close();
    }
  } finally {
    if (before === undefined) delete process.env["BATON_TOKEN"];
    else process.env["BATON_TOKEN"] = before;
  }
  assert.deepEqual(shown, ["Bearer of-all", "Bearer own", undefined]);
});

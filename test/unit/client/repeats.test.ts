/** What a client does whose first node stores what it is sent, and breaks before it answers. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BatonClient, CallError } from "../../../src/client/baton-client.ts";
import type { Answer, Call, Connection } from "../../../src/client/connection/connection.ts";

const LOST = "http://10.0.0.1";
const NEXT = "http://10.0.0.2";
const STATUS = { store: { shared: true }, cluster: { coordination: "postgres" } };

function opened() {
  const sent: (Pick<Call, "path"> & { readonly url: string; readonly body: unknown })[] = [];
  const answered = (body: object): Answer => ({ status: 200, body: JSON.stringify(body) });
  const connect = (url: string): Connection => ({
    call: async ({ path, body = "null" }) => {
      if (path === "/status") return answered(STATUS);
      const request: unknown = JSON.parse(body);
      sent.push({ url, path, body: request });
      if (url === LOST) throw new CallError("UNREACHABLE", "it broke", { maybeDone: true });
      return answered(Array.isArray(request) ? request.map(() => ({ job_id: "a" })) : { job_id: "a" });
    },
    open: () => Promise.reject(new Error("not here")),
    close: async () => {},
  });
  const client = new BatonClient({ urls: [LOST, NEXT], discover: false, connect });
  return { client, sent };
}

describe("a client whose answer is lost", () => {
  it("sends a submit again under the same keys, one for each job", async () => {
    const { client, sent } = opened();
    assert.equal((await client.submit({ task: "a" })).job_id, "a");
    const [first, second] = sent.splice(0);
    assert.deepEqual([first!.url, second!.url], [LOST, NEXT]);
    assert.deepEqual(second!.body, first!.body);
    assert.ok((first!.body as { idempotency_key: string }).idempotency_key);
    await client.submitMany([{ task: "a" }, { task: "a" }]);
    const bodies = sent.map(({ body }) => body as { idempotency_key: string }[]);
    assert.deepEqual(bodies.at(-1), bodies[0]);
    assert.equal(new Set(bodies[0]!.map((job) => job.idempotency_key)).size, 2);
    await client.close();
  });

  it("does not make a call of a function again, and says that nobody knows", async () => {
    const { client, sent } = opened();
    await assert.rejects(client.call("hello"), { code: "OUTCOME_UNKNOWN", outcome: "unknown" });
    assert.deepEqual(
      sent.map(({ url }) => url),
      [LOST],
    );
    await client.close();
  });
});

/** A node that everybody can reach, and callers who mean it no good: on bare sockets, where no client puts anything right. */

import assert from "node:assert/strict";
import { connect } from "node:net";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { eventually } from "../../support/wait.ts";
import { AccessWorld, ADMIN } from "./access-world.ts";
import { appOf, FakeNode } from "../../unit/http/fake-node.ts";

const PASSWORD = "correct horse battery staple";
const NOBODY = /^(?:HTTP\/1\.1 (?:400|401|404|405|431|501) |$)/;
/** In every answer that tells something: of the node, its jobs, or who is allowed in. */
const TOLD = /"principal"|"tokens"|"jobs"|"nodes"|"store":"|"promises"|"entries"/;

describe("a node that everybody can reach", () => {
  const scope = suiteScope();
  let world: AccessWorld;
  before(async () => {
    world = await AccessWorld.open(scope, { HTTP__HOST: "0.0.0.0" });
  });

  /** Everything that comes back until the connection is closed. */
  function raw(...lines: readonly string[]): Promise<string> {
    const { port } = new URL(world.node.url);
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), "127.0.0.1");
      let text = "";
      socket.setTimeout(10_000, () => socket.destroy(new Error(`no answer to ${lines[0]}`)));
      socket.on("data", (part) => (text += part)).on("close", () => resolve(text));
      socket.on("error", (error: NodeJS.ErrnoException) =>
        error.code === "ECONNRESET" ? resolve(text) : reject(error),
      );
      socket.write([...lines, "", ""].join("\r\n"));
    });
  }

  const HEAD = ["Host: node", "Connection: close"];

  it("tells nothing by another spelling of a path", async () => {
    const paths = [
      "//status",
      "//v1/jobs",
      "/v1//jobs",
      "/./status",
      "/%2e%2e/status",
      "/livez/../status",
      "/livez/%2e%2e/tokens",
      "/livez%2f..%2fstatus",
      "/metrics/../tokens",
      "/assets/../tokens",
      "/assets/..%2f..%2f..%2fpackage.json",
      "/assets/%2e%2e/%2e%2e/%2e%2e/package.json",
      "/assets/..%5c..%5cpackage.json",
      "/STATUS",
      "/%73tatus",
      "/status.",
      "/status/",
      "/status%00",
      "/status%20",
      "/status;/livez",
      "/status%3f/livez",
      "/status?/livez",
      "http://node/status",
      "http://other/tokens",
      "http://node/livez/../tokens",
      "*",
      "status",
    ];
    for (const path of paths) {
      const answer = await raw(`GET ${path} HTTP/1.1`, ...HEAD);
      // The page of the dashboard holds no data.
      if (path !== "*") assert.match(answer, NOBODY, path);
      assert.doesNotMatch(answer, TOLD, path);
    }
  });

  it("tells nothing to another method, version or protocol", async () => {
    for (const method of ["TRACE", "OPTIONS", "PATCH", "PROPFIND", "PURGE", "QUERY", "M-SEARCH", "get"])
      assert.match(await raw(`${method} /status HTTP/1.1`, ...HEAD), NOBODY, method);
    assert.equal(await raw("CONNECT 127.0.0.1:22 HTTP/1.1", ...HEAD), "", "it is no proxy");
    const good = `Authorization: Bearer ${world.tokens.admin}`;
    assert.doesNotMatch(await raw("TRACE /status HTTP/1.1", ...HEAD, good), /Bearer/, "nothing is echoed");
    assert.match(await raw("GET /status HTTP/1.0"), /^HTTP\/1\.1 401 /);
    assert.match(await raw("GET /status HTTP/1.0", good), /^HTTP\/1\.1 200 /);
    assert.match(await raw("PRI * HTTP/2.0", "", "SM"), NOBODY);
    const upgrade = ["Host: node", "Connection: Upgrade, close"];
    for (const to of ["websocket", "h2c", "TLS/1.0"]) {
      const key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
      for (const path of ["/status", "/peer/mesh", "/v1/events", "/cluster/live"]) {
        const answer = await raw(
          `GET ${path} HTTP/1.1`,
          ...upgrade,
          `Upgrade: ${to}`,
          key,
          "Sec-WebSocket-Version: 13",
        );
        assert.match(answer, NOBODY, `${to} ${path}`);
      }
    }
  });

  it("finds a token only where it belongs", async () => {
    const { admin } = world.tokens;
    const status = async (path: string, ...lines: readonly string[]): Promise<string> =>
      (await raw(`GET ${path} HTTP/1.1`, ...HEAD, ...lines)).slice(9, 12);
    const bearer = `Authorization: Bearer ${admin}`;
    assert.equal(await status("/session", bearer), "200");
    assert.equal(await status("/session", bearer, bearer), "401", "two headers, also if both are good");
    assert.equal(await status("/session", bearer, "authorization: Bearer x"), "401");
    assert.equal(await status("/session", "Authorization:", bearer), "401");
    assert.equal(await status(`/session?token=${admin}&access_token=${admin}&authorization=${admin}`), "401");
    assert.equal(await status("/session", `Proxy-Authorization: Bearer ${admin}`), "401");
    assert.equal(await status("/session", `Cookie: baton_session=${admin}; token=${admin}`), "401");
    assert.equal(await status("/session", "Authorization:", ` Bearer ${admin}`), "400", "folded");
    assert.equal(await status("/session", `Authorization : Bearer ${admin}`), "400");
    assert.equal(await status("/session", `Authorization: Bearer\t${admin}`), "401");
    assert.equal(await status("/session", `Authorization: Bearer ${"x".repeat(15_000)}`), "401");
    assert.equal(await status("/session", `Authorization: Bearer ${"x".repeat(20_000)}`), "431");
    assert.equal(await status("/session", `Authorization: Bearer ${admin.slice(0, -1)}é`), "401");
  });

  it("does not read a body twice, nor a request in another's body", async () => {
    const hidden = `GET /tokens HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer ${world.tokens.read}\r\n\r\n`;
    const chunk = `${hidden.length.toString(16)}\r\n${hidden}\r\n0`;
    const post = ["POST /session HTTP/1.1", ...HEAD];
    const both = await raw(...post, "Content-Length: 4", "Transfer-Encoding: chunked", "", chunk);
    assert.match(both, /^HTTP\/1\.1 400 /);
    assert.match(
      await raw(...post, "Content-Length: 4", "Content-Length: 5", "", "abcde"),
      /^HTTP\/1\.1 400 /,
    );
    for (const answer of [both, await raw(...post, "Transfer-Encoding: xchunked", "", chunk)])
      assert.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1, answer);
  });

  it("a page of another site can neither log somebody in nor change anything with a cookie", async () => {
    await world.user("ann", PASSWORD, "operate");
    const cookie = await world.session("ann", PASSWORD);
    const body = { user: "ann", password: PASSWORD };
    const { url } = world.node;
    const pause = async (headers: Record<string, string>): Promise<number> =>
      (await world.ask("/queues/mail/pause", { method: "POST", headers: { cookie, ...headers } })).status;
    const others: Record<string, string>[] = [
      { origin: "http://evil.example" },
      { origin: `${url}.evil.example` },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { origin: url, "sec-fetch-site": "cross-site" },
      { origin: "http://evil.example", "sec-fetch-site": "same-origin" },
    ];
    for (const headers of others) {
      const label = JSON.stringify(headers);
      const login = await world.ask("/session", { method: "POST", body, headers });
      assert.deepEqual([login.status, login.headers["set-cookie"]], [403, undefined], label);
      assert.equal(await pause(headers), 403, label);
      const out = await world.ask("/session", { method: "DELETE", headers: { cookie, ...headers } });
      assert.equal(out.status, 403, label);
    }
    for (const headers of [{}, { "sec-fetch-site": "none" }, { referer: `${url}/` }])
      assert.equal(await pause(headers as Record<string, string>), 403, JSON.stringify(headers));
    assert.equal(await pause({ origin: url }), 200);
    assert.equal(await pause({ "sec-fetch-site": "same-origin" }), 200);
    // A token is not sent by a browser on its own.
    const own = await world.ask("/queues/mail/pause", { method: "POST", token: world.tokens.operate });
    assert.equal(own.status, 200);
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]) {
      const form = await world.ask("/session", {
        method: "POST",
        body: JSON.stringify(body),
        headers: { "content-type": type },
      });
      assert.equal(form.status, 415, `${type} needs no leave of the browser`);
    }
    const read = await world.ask("/session", { headers: { cookie, origin: "http://evil.example" } });
    assert.equal(
      read.headers["access-control-allow-origin"],
      undefined,
      "and no other page reads the answer",
    );
    assert.equal((await world.ask("/session", { headers: { cookie } })).status, 200, "it is still logged in");
  });

  it("a login makes a session of its own, whatever cookie was there before", async () => {
    await world.user("bea", PASSWORD, "read");
    const planted = `baton_session=${"A".repeat(43)}`;
    const body = { user: "bea", password: PASSWORD };
    const login = await world.ask("/session", { method: "POST", body, headers: { cookie: planted } });
    const cookie = String(login.headers["set-cookie"]).split(";", 1)[0]!;
    assert.notEqual(cookie, planted);
    assert.equal((await world.ask("/session", { headers: { cookie: planted } })).status, 401);
    assert.equal((await world.ask("/session", { headers: { cookie } })).status, 200);
  });
});

describe("a stream that is open", () => {
  /** How long it took until it ended; the first event has come by then. */
  async function endOf(world: AccessWorld, path: string, headers: Record<string, string>) {
    const answer = await fetch(`${world.node.url}${path}`, {
      headers: { accept: "text/event-stream", ...headers },
      signal: AbortSignal.timeout(20_000),
    });
    assert.equal(answer.status, 200, path);
    let ended = false;
    const over = (async () => {
      for await (const _ of answer.body!);
      ended = true;
    })();
    return { over, ended: () => ended };
  }

  it("ends with the token or the session by which it was opened, and no other does", async (t) => {
    const world = await AccessWorld.open(t);
    await world.user("ann", PASSWORD, "read");
    const cookie = await world.session("ann", PASSWORD);
    const make = { name: "reader", permission: "read", by: "test" } as const;
    const { tokens } = world.node.services.access;
    const revoked = await tokens.create({ ...make, expiresInMs: null });
    const short = await tokens.create({ ...make, expiresInMs: 1_500 });
    const bearer = (text: string) => ({ authorization: `Bearer ${text}` });
    const ending = [
      await endOf(world, "/cluster/live", bearer(revoked.text)),
      await endOf(world, "/v1/events", bearer(revoked.text)),
      await endOf(world, "/cluster/live", bearer(short.text)),
      await endOf(world, "/cluster/live", { cookie }),
    ];
    const staying = [
      await endOf(world, "/cluster/live", bearer(world.tokens.read)),
      await endOf(world, "/v1/events", bearer(ADMIN)),
    ];
    assert.equal(
      (await world.ask(`/tokens/${revoked.token.id}`, { method: "DELETE", token: ADMIN })).status,
      200,
    );
    const out = { method: "DELETE", headers: { cookie, origin: world.node.url } };
    assert.equal((await world.ask("/session", out)).status, 200);
    const from = systemClock.monotonic();
    await Promise.all(ending.map(({ over }) => over));
    const tookMs = systemClock.monotonic() - from;
    assert.ok(tookMs < 5_000, `docs/access.md promises five seconds, and it took ${Math.round(tookMs)} ms`);
    assert.ok(staying.every(({ ended }) => !ended()));
    const { body } = await world.ask("/tokens", { token: ADMIN });
    const { tokens: listed } = body as { tokens: { id: string; expired: boolean }[] };
    assert.deepEqual(
      [...new Set(listed.map(({ id, expired }) => expired === (id === short.token.id)))],
      [true],
    );
    for (const { over } of staying) over.catch(() => {}); // they end with the node
  });
});

describe("a call that waits for work", () => {
  it("gets none when its token was revoked meanwhile", async (t) => {
    const world = await AccessWorld.open(t, { WORKER__CONCURRENCY: "0" });
    const make = { name: "agent", permission: "operate", expiresInMs: null, by: "test" } as const;
    const { tokens } = world.node.services.access;
    const [revoked, good] = [await tokens.create(make), await tokens.create(make)];
    const lease = (token: string, agent: string) => {
      const body = { agent, capabilities: ["work"], max_tasks: 1, timeout_ms: 5_000 };
      return world.ask("/v1/leases", { method: "POST", token, body });
    };
    const waiting = lease(revoked.text, "gone");
    await eventually("it to wait", async () => {
      const { body } = await world.ask("/v1/agents", { token: ADMIN });
      return (body as { agents: { name: string }[] }).agents.some(({ name }) => name === "gone") || null;
    });
    await tokens.revoke(revoked.token.id);
    const body = { task: "work" };
    assert.equal((await world.ask("/v1/jobs", { method: "POST", token: ADMIN, body })).status, 200);
    assert.equal((await waiting).status, 204);
    assert.equal((await lease(revoked.text, "gone")).status, 401);
    assert.equal((await lease(good.text, "here")).status, 200, "the job is there for another one");
  });
});

describe("the journal", () => {
  it("is not filled by strangers: what they try without being heard is counted", async () => {
    const services = new FakeNode();
    const notes: { subject: string | null; detail: unknown }[] = [];
    services.journal.note = ({ subject, detail }) => void notes.push({ subject: subject ?? null, detail });
    const app = await appOf(services, { host: "10.0.0.1" });
    const post = async (payload: object, headers: Record<string, string> = {}) =>
      (await app.inject({ method: "POST", url: "/session", payload, headers })).statusCode;
    const seen = new Set<number>();
    for (let n = 0; n < 50; n++) {
      seen.add(await post({ user: "ann", password: "a guess" }));
      seen.add(await post({ nonsense: n }));
      seen.add(await post({}, { origin: "http://evil.example" }));
      seen.add((await app.inject({ method: "GET", url: `/jobs/${n}` })).statusCode);
    }
    assert.deepEqual(seen, new Set([404, 400, 403, 401, 429]));
    assert.deepEqual(notes, []);
    await app.close();
    const counts = notes.map(({ detail }) => detail as { code: string; count: number });
    const told = counts.map(({ code, count }) => `${code} ${count}`);
    assert.deepEqual(told.sort(), ["BAD_REQUEST 110", "TOO_MANY_REQUESTS 40", "UNAUTHENTICATED 50"]);
  });
});

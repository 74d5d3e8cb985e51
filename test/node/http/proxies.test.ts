/** Callers behind proxies, over real connections from addresses of the loopback network. */

import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { describe, it } from "node:test";
import { Agent, request } from "undici";
import type { NodeName } from "../../../src/core/ids.ts";
import type { NodeInfo } from "../../../src/core/node.ts";
import { loginsOfNode } from "../../../src/http/rate-limits.ts";
import { atEnd, type Scope } from "../../support/node-cleanup.ts";
import { AccessWorld } from "./access-world.ts";
import { appOf, FakeNode } from "../../unit/http/fake-node.ts";

const PASSWORD = "correct horse battery staple";
const PROXY = "127.0.0.7";
const OUTER = "127.0.0.8";
const STRANGER = "127.0.0.9";
const TRUSTED = { HTTP__TRUSTED_PROXIES: `${PROXY},${OUTER},fd00::/8,::1` };

const HAS_IPV6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === "::1"),
);
const NO_IPV6 = HAS_IPV6 ? false : "this machine has no IPv6";

type Headers = Readonly<Record<string, string>>;

/** Calls from an address, as a proxy or a stranger there would. */
const ANY_QUEUE = { allow_unknown: true };

function from(t: Scope, world: AccessWorld, address: string) {
  const agent = new Agent({ localAddress: address });
  atEnd(t, () => agent.close());
  const port = new URL(world.node.url).port;
  const host = address.includes(":") ? "[::1]" : "127.0.0.1";
  return async (path: string, headers: Headers, body?: object) => {
    const answer = await request(`http://${host}:${port}${path}`, {
      method: body ? "POST" : "GET",
      headers: { ...headers, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
      dispatcher: agent,
    });
    await answer.body.dump();
    return { status: answer.statusCode, cookie: String(answer.headers["set-cookie"] ?? "") };
  };
}

/** The addresses that the audit tells of changes to queues, by the queue. */
async function audited(world: AccessWorld, queues: readonly string[]): Promise<Record<string, unknown>> {
  const entries = await world.audit<{ subject: string; detail: { address?: string } }>(queues.length);
  return Object.fromEntries(entries.map(({ subject, detail }) => [subject, detail.address]));
}

describe("behind proxies", () => {
  it("the address of the caller is what a trusted proxy says, and nobody else", async (t) => {
    const world = await AccessWorld.open(t, TRUSTED);
    const authorization = `Bearer ${world.tokens.operate}`;
    const cases: [queue: string, by: string, forwarded: string | null, address: string][] = [
      ["direct", STRANGER, null, STRANGER],
      ["spoofed", STRANGER, "203.0.113.1", STRANGER],
      ["one", PROXY, "203.0.113.1", "203.0.113.1"],
      ["one-spoofed", PROXY, "198.51.100.66, 203.0.113.1", "203.0.113.1"],
      ["two", PROXY, `203.0.113.1, ${OUTER}`, "203.0.113.1"],
      ["two-spoofed", PROXY, `198.51.100.66, 203.0.113.1, ${OUTER}`, "203.0.113.1"],
      ["outer-unknown", PROXY, `203.0.113.1, ${STRANGER}`, STRANGER],
      ["six", PROXY, "2001:db8::5", "2001:db8::5"],
      ["six-two", PROXY, "2001:db8::5, fd00::17", "2001:db8::5"],
      ["mapped", PROXY, "::ffff:203.0.113.1", "203.0.113.1"],
      ["no-word", PROXY, null, PROXY],
      ["nonsense", PROXY, "x".repeat(500), "x".repeat(64)],
    ];
    const callers = new Map([PROXY, STRANGER].map((address) => [address, from(t, world, address)]));
    for (const [queue, by, forwarded] of cases) {
      const headers = { authorization, ...(forwarded !== null && { "x-forwarded-for": forwarded }) };
      const { status } = await callers.get(by)!(`/queues/${queue}/pause`, headers, ANY_QUEUE);
      assert.equal(status, 200, queue);
    }
    const found = await audited(
      world,
      cases.map(([queue]) => queue),
    );
    for (const [queue, , , address] of cases) assert.equal(found[queue], address, queue);
  });

  it("limits are those of the caller, and no header makes a stranger another one", async (t) => {
    const world = await AccessWorld.open(t, TRUSTED);
    const wrong = { authorization: "Bearer baton_wrong" };
    const statuses = async (by: string, forwarded: (n: number) => string): Promise<number[]> => {
      const ask = from(t, world, by);
      const seen = new Set<number>();
      for (let n = 0; n < 70; n++)
        seen.add((await ask("/status", { ...wrong, "x-forwarded-for": forwarded(n) })).status);
      return [...seen];
    };
    assert.deepEqual(await statuses(STRANGER, (n) => `203.0.113.${n}`), [401, 429], "a stranger is one");
    const stranger = from(t, world, STRANGER);
    const right = { authorization: `Bearer ${world.tokens.read}` };
    assert.equal((await stranger("/status", right)).status, 200, "a right token is always heard");
    assert.equal((await stranger("/status", {})).status, 401, "who shows nothing is told what to show");
    assert.deepEqual(await statuses(PROXY, (n) => `203.0.113.${n}`), [401], "callers of a proxy are many");
    assert.deepEqual(
      await statuses(PROXY, (n) => `198.51.100.${n}, 203.0.113.200`),
      [401, 429],
      "one caller of it is one",
    );
    assert.deepEqual(await statuses(OUTER, () => "203.0.113.201"), [401, 429]);
    assert.equal(
      (await from(t, world, PROXY)("/status", { ...wrong, "x-forwarded-for": "203.0.113.202" })).status,
      401,
      "and keeps nobody else out",
    );
  });

  it("a session's cookie is for https alone where a trusted proxy says that the caller uses it", async (t) => {
    const world = await AccessWorld.open(t, TRUSTED);
    await world.user("ann", PASSWORD, "read");
    const login = { user: "ann", password: PASSWORD };
    const two = `203.0.113.1, ${OUTER}`;
    const cases: [by: string, headers: Headers, secure: boolean][] = [
      [STRANGER, { "x-forwarded-for": "203.0.113.1", "x-forwarded-proto": "https" }, false],
      [PROXY, { "x-forwarded-for": "203.0.113.1", "x-forwarded-proto": "https" }, true],
      [PROXY, { "x-forwarded-proto": "HTTPS" }, true],
      [PROXY, { "x-forwarded-for": "203.0.113.1", "x-forwarded-proto": "http" }, false],
      [PROXY, { "x-forwarded-for": two, "x-forwarded-proto": "https" }, true],
      [PROXY, { "x-forwarded-for": two, "x-forwarded-proto": "https, http" }, true],
      [PROXY, { "x-forwarded-for": two, "x-forwarded-proto": "http, https" }, false],
      // The caller's own word stands before those of the proxies.
      [PROXY, { "x-forwarded-for": two, "x-forwarded-proto": "https, http, http" }, false],
    ];
    const callers = new Map([PROXY, STRANGER].map((address) => [address, from(t, world, address)]));
    for (const [by, headers, secure] of cases) {
      const { status, cookie } = await callers.get(by)!("/session", headers, login);
      const label = `${by} ${JSON.stringify(headers)}`;
      assert.equal(status, 200, label);
      assert.equal(/; Secure(?:;|$)/.test(cookie), secure, `${label} ${cookie}`);
    }
  });

  it("the same over IPv6, and of IPv4 at a listener for both", { skip: NO_IPV6 }, async (t) => {
    const world = await AccessWorld.open(t, { ...TRUSTED, HTTP__HOST: "::" });
    const authorization = `Bearer ${world.tokens.operate}`;
    const six = from(t, world, "::1");
    const four = from(t, world, PROXY);
    const stranger = from(t, world, STRANGER);
    const say = { "x-forwarded-for": "2001:db8::5" };
    assert.equal((await six("/queues/six/pause", { authorization, ...say }, ANY_QUEUE)).status, 200);
    assert.equal((await four("/queues/four/pause", { authorization, ...say }, ANY_QUEUE)).status, 200);
    assert.equal(
      (await stranger("/queues/stranger/pause", { authorization, ...say }, ANY_QUEUE)).status,
      200,
    );
    const { six: a, four: b, stranger: c } = await audited(world, ["six", "four", "stranger"]);
    assert.deepEqual([a, b, c], ["2001:db8::5", "2001:db8::5", STRANGER]);
  });

  it("an address that is known to be https makes every cookie Secure, and a base path bounds it", async (t) => {
    const world = await AccessWorld.open(t, {
      HTTP__URL: "https://jobs.example",
      HTTP__BASE_PATH: "/baton",
    });
    await world.user("ann", PASSWORD, "read");
    const body = { user: "ann", password: PASSWORD };
    const below = await world.ask("/baton/session", { method: "POST", body });
    const [made, cleared] = below.headers["set-cookie"] as string[];
    assert.match(made!, /; Path=\/baton; HttpOnly; SameSite=Strict; Secure$/);
    assert.match(
      cleared!,
      /^baton_session=; Max-Age=0; Path=\/; /,
      "an older one above it would be in its way",
    );
    const cookie = made!.split(";", 1)[0]!;
    assert.equal((await world.ask("/baton/status", { headers: { cookie } })).status, 200);
    const origin = world.node.url;
    const out = await world.ask("/baton/session", { method: "DELETE", headers: { cookie, origin } });
    assert.match(String(out.headers["set-cookie"]), /^baton_session=; Max-Age=0; Path=\/baton; .*Secure$/);
    const above = await world.ask("/session", { method: "POST", body });
    assert.match(String(above.headers["set-cookie"]), /; Path=\/; HttpOnly; SameSite=Strict; Secure$/);
  });
});

describe("the logins that a cluster grants", () => {
  it("are divided among its nodes, and a few are left to each", () => {
    const all = [1, 2, 3, 5, 20].map((nodes) => [nodes, loginsOfNode(10, nodes), loginsOfNode(20, nodes)]);
    assert.deepEqual(all, [
      [1, 10, 20],
      [2, 5, 10],
      [3, 4, 7],
      [5, 3, 4],
      [20, 3, 3],
    ]);
    assert.equal(loginsOfNode(10, 0), 10, "before it knows anybody");
  });

  it("are counted by the nodes that live now", async () => {
    const services = new FakeNode();
    const [self] = services.membership.nodes() as [NodeInfo];
    const other = (name: string, alive: boolean): NodeInfo => ({ ...self, name: name as NodeName, alive });
    services.others = [other("b", true), other("c", true), other("d", false)];
    const app = await appOf(services);
    try {
      const statuses: number[] = [];
      for (let n = 0; n < 6; n++) {
        const payload = { user: "ann", password: "a guess" };
        const remoteAddress = `10.0.0.${n}`;
        const { statusCode } = await app.inject({ method: "POST", url: "/session", payload, remoteAddress });
        statuses.push(statusCode);
      }
      assert.deepEqual(statuses, [404, 404, 404, 404, 429, 429]);
    } finally {
      await app.close();
    }
  });
});

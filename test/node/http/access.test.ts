import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { peerRequestHandler } from "../../../src/api/peer-request-handler.ts";
import type { Operation } from "../../../src/api/operation.ts";
import { OPERATIONS } from "../../../src/api/operation-table.ts";
import { allows } from "../../../src/core/access/permissions.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { AccessWorld, ADMIN, justEnough } from "./access-world.ts";
import { appOf, executorOf, FakeNode, keptLog } from "../../unit/http/fake-node.ts";

const ROWS: readonly Operation[] = OPERATIONS;
const PUBLIC = new Set(["/livez", "/readyz", "/workz", "/healthz", "/health", "/metrics"]);
const PASSWORD = "correct horse battery staple";

function pathOf(row: Operation): string {
  return (
    row.path
      .replace("{id}", "here-0198c0de-0000-7000-8000-000000000000")
      .replaceAll(/\{\w+\}/g, "nothing")
      // Nobody knows that task, and nobody should wait for it.
      .replace(/^\/functions\/.*/, "$&?timeout_ms=1")
  );
}

/** Of a router's tree: `├── /jobs (POST)` with what lies below it further to the right. */
function routesIn(tree: string): { readonly method: string; readonly path: string }[] {
  const above: string[] = [];
  return tree.split("\n").flatMap((line) => {
    const found = /^([│ ]*)[├└]── (\S*?)(?: \(([A-Z, ]+)\))?$/.exec(line);
    if (!found) return [];
    const depth = found[1]!.length / 4;
    above.length = depth;
    const path = above.join("") + found[2]!;
    above.push(found[2]!);
    return (found[3]?.split(", ") ?? []).map((method) => ({ method, path }));
  });
}

const scope = suiteScope();
let world: AccessWorld;
before(async () => {
  world = await AccessWorld.open(scope);
});

describe("a node that asks who calls", () => {
  it("tells nobody anything without credentials, at whatever route, method and path", async () => {
    const services = new FakeNode();
    const executor = executorOf(services);
    const log = keptLog();
    const app = await appOf(services, {
      executor,
      host: "10.0.0.1",
      log,
      peers: peerRequestHandler({ clock: services.clock, log }, { executor }),
      dashboard: { enabled: true },
    });
    try {
      const routes = routesIn(app.printRoutes({ commonPrefix: false }));
      for (const row of ROWS) {
        const path = row.path.replaceAll(/\{(\w+)\}/g, ":$1");
        assert.ok(
          routes.some((route) => route.method === row.method && route.path === path),
          `${row.method} ${path} was not found among the routes`,
        );
      }
      const paths = new Set(routes.map(({ path }) => path));
      const unknown = ["/nope", "/jobs/", "/.env", "/peer", "/docs/nope", "/v1", "/admin"];
      const tried = [...paths, ...unknown].flatMap((path) =>
        ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].map((method) => ({ method, path })),
      );
      let refused = 0;
      for (const { method, path } of tried) {
        const url = path.replaceAll(/:\w+/g, "nothing").replaceAll("*", "x");
        // A body that is none must not be told apart either.
        const payload = method === "GET" || method === "HEAD" ? undefined : "{broken";
        const headers = payload === undefined ? {} : { "content-type": "application/json" };
        const { statusCode, body } = await app.inject({ method: method as "GET", url, payload, headers });
        const label = `${method} ${path}`;
        const isPage =
          /^\/(?:$|index\.html|favicon\.svg|assets\/)/.test(path) && /^(?:GET|HEAD)$/.test(method);
        if (isPage) assert.ok([200, 404, 503].includes(statusCode), `${label} ${statusCode}`);
        else if (PUBLIC.has(path) && /^(?:GET|HEAD)$/.test(method)) assert.equal(statusCode, 200, label);
        else if (label === "POST /session") assert.equal(statusCode, 400, label);
        else {
          assert.equal(statusCode, 401, `${label} ${body}`);
          if (method !== "HEAD") assert.equal(JSON.parse(body).error, "UNAUTHENTICATED", label);
          refused++;
        }
      }
      assert.ok(refused > 300, `${refused} refused`);
    } finally {
      await app.close();
    }
  });

  it("lets nobody do more than their permission includes", async () => {
    for (const row of ROWS) {
      if (row.path === "/session") continue;
      for (const permission of justEnough(row)) {
        const { status, body } = await world.ask(pathOf(row), {
          method: row.method,
          token: world.tokens[permission],
          // Refused for its body or carried out in vain: whether one was let in is told by 403 alone.
          ...(row.method !== "GET" && { body: {} }),
        });
        const label = `${permission}: ${row.method} ${row.path} ${status}`;
        if (allows(permission, row.permission)) assert.ok(status !== 401 && status !== 403, label);
        else {
          assert.equal(status, 403, label);
          const { error, needs, has } = body as { error: string; needs: string; has: string };
          assert.deepEqual([error, needs, has], ["FORBIDDEN", row.permission, permission], label);
        }
      }
    }
  });

  it("takes a credential only as it should be: one header, one scheme, one token", async () => {
    const good = world.tokens.read;
    const status = async (headers: Record<string, string>): Promise<number> =>
      (await world.ask("/status", { headers })).status;
    assert.equal(await status({ authorization: `Bearer ${good}` }), 200);
    assert.equal(await status({ authorization: `bearer ${good}` }), 200);
    assert.equal(await status({ authorization: `Bearer ${ADMIN}` }), 200);
    const bad = [
      "",
      " ",
      "Bearer",
      "Bearer ",
      "Bearer null",
      "Bearer undefined",
      "Bearer []",
      "Bearer {}",
      "Bearer true",
      "Bearer *",
      good,
      `Basic ${Buffer.from(`x:${good}`).toString("base64")}`,
      `Bearer ${good} ${good}`,
      `Bearer ${good},${good}`,
      `Bearer ${good}x`,
      `Bearer ${good.slice(0, -1)}`,
      `Bearer ${good.toUpperCase()}`,
      `Bearer ${"x".repeat(4_000)}`,
      "Bearer default_token",
    ];
    for (const authorization of bad) assert.equal(await status({ authorization }), 401, authorization);
    assert.equal(await status({ "x-api-key": good, "x-baton-token": good }), 401);
  });

  it("believes no word of a caller about who they are", async () => {
    const claims = {
      "x-baton-principal": "admin loopback loopback",
      "x-baton-from": "here",
      "x-baton-signature": "A".repeat(43),
      "x-baton-key": "A".repeat(8),
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-user": "admin",
      "x-original-url": "/livez",
      "x-http-method-override": "GET",
    };
    for (const path of ["/status", "/status?internal=1", "/tokens?internal=1&internal_sent=1"]) {
      assert.equal((await world.ask(path, { headers: claims })).status, 401, path);
      const read = await world.ask(path, { headers: claims, token: world.tokens.read });
      assert.equal(read.status, path.startsWith("/tokens") ? 403 : 200, path);
    }
  });

  it("says who one is, and what the dashboard must know", async () => {
    const { body } = await world.ask("/session", { token: world.tokens.submit });
    assert.deepEqual(body, { principal: "token:submit", permission: "submit", open: false });
    const fixed = await world.ask("/session", { token: ADMIN });
    assert.deepEqual(fixed.body, { principal: "setting:access.token", permission: "admin", open: false });
    assert.equal((await world.ask("/session")).status, 401);
  });

  it("tells browsers what its answers are", async () => {
    const { headers } = await world.ask("/status", { token: ADMIN });
    assert.equal(headers["x-content-type-options"], "nosniff");
    assert.match(String(headers["content-security-policy"]), /frame-ancestors 'none'/);
    const refused = await world.ask("/status");
    assert.match(String(refused.headers["www-authenticate"]), /^Bearer /);
  });
});

describe("a node that listens to its own machine only", () => {
  const scope = suiteScope();
  let world: AccessWorld;
  before(async () => {
    world = await AccessWorld.open(scope, { ACCESS__REQUIRED: "auto" });
  });

  it("asks nobody, whatever they show, and says so", async () => {
    for (const token of [undefined, "nonsense", world.tokens.read]) {
      const { body } = await world.ask("/session", token === undefined ? {} : { token });
      assert.deepEqual(body, { principal: "loopback", permission: "admin", open: true });
    }
    assert.equal((await world.ask("/tokens")).status, 200);
  });

  it("does not take those for its own machine who come through a proxy on it", async () => {
    for (const name of ["x-forwarded-for", "forwarded"]) {
      const headers = { [name]: "203.0.113.9" };
      const { status, body } = await world.ask("/status", { headers });
      assert.equal(status, 401, name);
      assert.match((body as { message: string }).message, /access\.required: always/);
      assert.equal((await world.ask("/livez", { headers })).status, 200);
      assert.equal((await world.ask("/status", { headers, token: world.tokens.read })).status, 200);
    }
  });
});

describe("tokens", () => {
  it("are told once, kept as a hash, listed without it, and revoked at once", async () => {
    const { status, body, headers } = await world.ask("/tokens", {
      method: "POST",
      token: ADMIN,
      body: { name: "ci", permission: "submit", expires_in_ms: 3_600_000 },
    });
    assert.equal(status, 201);
    assert.equal(headers["cache-control"], "no-store");
    const { token, id, ...rest } = body as Record<string, string>;
    assert.match(token!, /^baton_[A-Za-z0-9_-]{43}$/);
    assert.equal(rest["created_by"], "setting:access.token");
    assert.equal((await world.ask("/session", { token: token! })).status, 200);
    const listed = await world.ask("/tokens", { token: ADMIN });
    assert.ok(!listed.text.includes(token!) && !/"(?:token|secret|hash)":/.test(listed.text));
    assert.ok(listed.text.includes(id!));
    assert.equal((await world.ask(`/tokens/${id}`, { method: "DELETE", token: ADMIN })).status, 200);
    assert.equal((await world.ask("/session", { token: token! })).status, 401);
    assert.equal((await world.ask(`/tokens/${id}`, { method: "DELETE", token: ADMIN })).status, 404);
    assert.ok(!(await world.ask("/tokens", { token: ADMIN })).text.includes(id!));
  });

  it("are refused with a bad name, permission or time", async () => {
    const bad: object[] = [
      { name: "", permission: "read" },
      { name: "a b", permission: "read" },
      { name: "a\r\nb", permission: "read" },
      { name: "ci", permission: "root" },
      { name: "ci", permission: "public" },
      { name: "ci" },
      { name: "ci", permission: "read", expires_in_ms: -1 },
      { name: "ci", permission: "read", expires_in_ms: 1e15 },
      { name: "ci", permission: "read", secret: "mine" },
    ];
    for (const body of bad) {
      const { status } = await world.ask("/tokens", { method: "POST", token: ADMIN, body });
      assert.equal(status, 400, JSON.stringify(body));
    }
  });
});

describe("users and their sessions", () => {
  it("log in with a cookie that scripts and other sites cannot have", async () => {
    await world.user("ann", PASSWORD, "operate");
    const { status, headers, body } = await world.ask("/session", {
      method: "POST",
      body: { user: "ann", password: PASSWORD },
    });
    assert.equal(status, 200);
    assert.deepEqual(body, { principal: "user:ann", permission: "operate", open: false });
    const cookie = String(headers["set-cookie"]);
    assert.match(cookie, /^baton_session=[A-Za-z0-9_-]{43}; /);
    for (const flag of ["HttpOnly", "SameSite=Strict", "Path=/"]) assert.ok(cookie.includes(flag), cookie);
    assert.ok(!cookie.includes("Secure"), "over http a browser would not keep it");
    const session = cookie.split(";", 1)[0]!;
    const read = await world.ask("/session", { headers: { cookie: `theme=dark; ${session}` } });
    assert.deepEqual(read.body, body);
    assert.equal(read.headers["cache-control"], "no-store");
    assert.equal((await world.ask("/tokens", { headers: { cookie: session } })).status, 403);
  });

  it("are not told whether it was the name or the password that was wrong", async () => {
    await world.user("bea", PASSWORD, "operate");
    const tries = [
      { user: "bea", password: `${PASSWORD}!` },
      { user: "bob", password: PASSWORD },
      { user: "bea", password: "scrypt" },
    ];
    const answers = await Promise.all(tries.map((body) => world.ask("/session", { method: "POST", body })));
    for (const { status, text, headers } of answers) {
      assert.equal(status, 401);
      assert.equal(text, answers[0]!.text);
      assert.equal(headers["set-cookie"], undefined);
    }
  });

  it("end with a logout, another password, or the user", async () => {
    await world.user("dan", PASSWORD, "operate");
    const origin = world.node.url;
    const alive = async (cookie: string): Promise<number> =>
      (await world.ask("/session", { headers: { cookie } })).status;
    const [one, two, three] = [
      await world.session("dan", PASSWORD),
      await world.session("dan", PASSWORD),
      await world.session("dan", PASSWORD),
    ];
    const out = await world.ask("/session", { method: "DELETE", headers: { cookie: one, origin } });
    assert.equal(out.status, 200);
    assert.match(String(out.headers["set-cookie"]), /^baton_session=; Max-Age=0/);
    assert.deepEqual([await alive(one), await alive(two)], [401, 200]);
    const next = "another horse and battery";
    const changed = await world.ask("/users/dan/password", {
      method: "PUT",
      token: ADMIN,
      body: { password: next },
    });
    assert.equal(changed.status, 200);
    assert.deepEqual([await alive(two), await alive(three)], [401, 401]);
    assert.equal(
      (await world.ask("/session", { method: "POST", body: { user: "dan", password: PASSWORD } })).status,
      401,
    );
    const four = await world.session("dan", next);
    assert.equal(await alive(four), 200);
    assert.equal((await world.ask("/users/dan", { method: "DELETE", token: ADMIN })).status, 200);
    assert.equal(await alive(four), 401);
    assert.equal((await world.ask("/users/dan", { method: "DELETE", token: ADMIN })).status, 404);
  });

  it("have a name of their own, and a password that is one", async () => {
    await world.user("eve", PASSWORD, "operate");
    const add = (body: object) => world.ask("/users", { method: "POST", token: ADMIN, body });
    const again = await add({ name: "eve", password: PASSWORD, permission: "read" });
    assert.deepEqual([again.status, (again.body as { error: string }).error], [409, "NAME_IN_USE"]);
    for (const password of ["", "tiny1", "aaaaaaaaaaaaaaaa", "annannannann"]) {
      const { status, text } = await add({ name: "bob", password, permission: "read" });
      assert.equal(status, 400, password);
      if (password !== "") assert.ok(!text.includes(password), "a refusal does not repeat it");
    }
  });

  it("a cookie that is doubled, empty or another's is nobody's", async () => {
    await world.user("fay", PASSWORD, "operate");
    const cookie = await world.session("fay", PASSWORD);
    const value = cookie.split("=")[1]!;
    const bad = [
      "baton_session=",
      `baton_session=x; ${cookie}`,
      `${cookie}; baton_session=`,
      `xbaton_session=${value}`,
      `baton_session=${world.tokens.admin}`,
    ];
    for (const each of bad)
      assert.equal((await world.ask("/status", { headers: { cookie: each } })).status, 401, each);
    assert.equal((await world.ask("/status", { token: value })).status, 401, "a session is no token");
    const mixed = await world.ask("/status", { headers: { cookie }, token: "wrong" });
    assert.equal(mixed.status, 401, "what is shown on purpose counts, and is not made up for by a cookie");
  });
});

describe("limits", () => {
  it("stop those who try passwords, by user and by address, and say for how long", async () => {
    // Without credentials behind it: each try ends with 404, and no password is hashed for it.
    const services = new FakeNode();
    const app = await appOf(services);
    const login = async (user: string, remoteAddress: string) => {
      const payload = { user, password: "a guess" };
      const answer = await app.inject({ method: "POST", url: "/session", payload, remoteAddress });
      return { status: answer.statusCode, retryAfter: answer.headers["retry-after"] };
    };
    try {
      for (let n = 0; n < 10; n++) assert.equal((await login("ann", `10.0.0.${n}`)).status, 404);
      const { status, retryAfter } = await login("ann", "10.0.0.99");
      assert.equal(status, 429, "of one user, wherever they come from");
      assert.ok(Number(retryAfter) >= 1 && Number(retryAfter) <= 60, String(retryAfter));
      for (let n = 0; n < 20; n++) assert.equal((await login(`user-${n}`, "10.9.9.9")).status, 404);
      assert.equal((await login("bob", "10.9.9.9")).status, 429, "of one address, whatever names it tries");
      assert.equal((await login("bob", "10.9.9.10")).status, 404);
      for (let n = 0; n < 20; n++) await login(`six-${n}`, `2001:db8:0:1::${n}`);
      assert.equal(
        (await login("six", "2001:db8:0:1:ffff::1")).status,
        429,
        "a network of IPv6 is one address",
      );
    } finally {
      await app.close();
    }
  });

  it("hold each caller to http.rate_limit", async (t) => {
    const world = await AccessWorld.open(t, { HTTP__RATE_LIMIT: "5" });
    const ask = async (token: string): Promise<number> => (await world.ask("/session", { token })).status;
    const mine = await Promise.all(Array.from({ length: 12 }, () => ask(world.tokens.read)));
    assert.ok(mine.filter((status) => status === 200).length <= 10, String(mine));
    assert.ok(mine.includes(429), String(mine));
    assert.equal(await ask(world.tokens.submit), 200, "another one's requests are not counted");
    assert.equal((await world.ask("/livez")).status, 200);
  });
});

describe("what was done", () => {
  interface Entry {
    readonly actor: string | null;
    readonly subject: string;
    readonly detail: Readonly<Record<string, unknown>>;
  }

  it("is in the audit: each change, by whom, and no payload, password or token", async (t) => {
    const world = await AccessWorld.open(t);
    const canary = "canary-7f3a9c-payload";
    const { operate, submit } = world.tokens;
    const made = await world.ask("/tokens", {
      method: "POST",
      token: ADMIN,
      body: { name: "ci", permission: "read" },
      headers: { "x-request-id": "mine-1" },
    });
    const { id, token } = made.body as { id: string; token: string };
    await world.ask("/users", {
      method: "POST",
      token: ADMIN,
      body: { name: "ann", password: PASSWORD, permission: "read" },
    });
    await world.session("ann", PASSWORD);
    await world.ask("/session", { method: "POST", body: { user: "ann", password: `${PASSWORD}-wrong` } });
    await world.ask("/queues/mail/pause", { method: "POST", token: operate });
    await world.ask("/queues/mail/pause", { method: "POST", token: submit });
    await world.ask("/schedules/tick", {
      method: "PUT",
      token: operate,
      body: { task: "hello", every_ms: 60_000, payload: { secret: canary } },
    });
    await world.ask("/jobs", { method: "POST", token: submit, body: { task: "x", payload: canary } });
    await world.ask(`/tokens/${id}`, { method: "DELETE", token: ADMIN });
    const entries = await world.audit<Entry>(7);
    assert.deepEqual(
      entries.map(({ actor, subject, detail }) => [actor, subject, detail["operation"], detail["status"]]),
      [
        ["setting:access.token", "ci", "create_token", 201],
        ["setting:access.token", "ann", "add_user", 201],
        [null, "ann", "login", 200],
        [null, "ann", "login", 401],
        ["token:operate", "mail", "pause_queue", 200],
        ["token:operate", "tick", "put_schedule", 201],
        ["setting:access.token", id, "revoke_token", 200],
      ],
    );
    assert.equal(entries[0]!.detail["request_id"], "mine-1");
    const text = JSON.stringify(entries);
    for (const secret of [canary, PASSWORD, token, ADMIN, operate, "scrypt"])
      assert.ok(!text.includes(secret), secret);
  });

  it("has no secret of anybody in the log, nor in any answer", async (t) => {
    const { log, lines } = keptLines();
    const world = await AccessWorld.open(t, {}, log);
    const canary = "canary-c0ffee-secret-0123456789abcdef";
    const password = "canary-password-of-ann-9182";
    await world.ask("/users", {
      method: "POST",
      token: ADMIN,
      body: { name: "ann", password, permission: "admin" },
    });
    const cookie = await world.session("ann", password);
    const secrets = [
      canary,
      password,
      ADMIN,
      cookie.split("=")[1]!,
      "scrypt$",
      ...Object.values(world.tokens),
    ];
    for (const row of ROWS) {
      const headers = { cookie, origin: world.node.url, "x-secret": canary };
      const path = `${pathOf(row)}${row.method === "GET" ? "?internal=1" : ""}`.replace("ms=1?", "ms=1&");
      const { text } = await world.ask(path, {
        method: row.method,
        headers,
        token: `${canary}-${row.name}`,
      });
      assert.ok(!text.includes(canary), row.name);
      if (row.method !== "GET") continue;
      const seen = await world.ask(pathOf(row), { token: ADMIN });
      for (const secret of secrets) assert.ok(!seen.text.includes(secret), `${row.name} ${secret}`);
    }
    const text = JSON.stringify(lines);
    for (const secret of secrets) assert.ok(!text.includes(secret), `the log has ${secret}`);
  });
});

function keptLines() {
  const lines: unknown[] = [];
  const keep = (fields: unknown, message: string): void => void lines.push([fields, message]);
  return { lines, log: { debug: keep, info: keep, warn: keep, error: keep } };
}

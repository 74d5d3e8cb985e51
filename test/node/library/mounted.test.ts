/** The dashboard and the API in real servers of Express and Fastify, with a real node. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it, type TestContext } from "node:test";
import express from "express";
import Fastify from "fastify";
import { BatonError } from "../../../src/core/errors.ts";
import { defineTask } from "../../../src/jobs/tasks/task.ts";
import { dashboard, type ExpressRequest } from "../../../src/library/servers/express.ts";
import { batonDashboard } from "../../../src/library/servers/fastify.ts";
import type { Admission, MountableNode } from "../../../src/library/servers/mount.ts";
import type { BatonNode } from "../../../src/node/baton-node.ts";
import { atEnd } from "../../support/node-cleanup.ts";
import { nodeHere } from "../../support/node-here.ts";
import { eventually } from "../../support/wait.ts";

const hello = defineTask({ name: "hello", run: (who) => `hello ${String(who)}` });
const slow = defineTask({
  name: "slow",
  run: async (_payload, { log, signal }) => {
    log("has begun");
    await once(signal, "abort");
  },
});

interface Served {
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

interface Serving {
  readonly authenticate?: (headers: IncomingHttpHeaders) => Admission | Promise<Admission>;
  readonly host?: string;
  readonly trustProxy?: boolean;
}

type Serve = (t: TestContext, baton: MountableNode, serving?: Serving) => Promise<Served>;

async function listening(t: TestContext, server: Server, close: () => Promise<void>): Promise<Served> {
  const { port } = server.address() as AddressInfo;
  atEnd(t, close);
  return { url: `http://127.0.0.1:${port}`, port, close };
}

const inExpress: Serve = async (t, baton, { authenticate, host = "127.0.0.1", trustProxy = false } = {}) => {
  const app = express().set("trust proxy", trustProxy).set("env", "test");
  const options = authenticate && {
    authenticate: (request: ExpressRequest) => authenticate(request.headers),
  };
  app.use("/inner/jobs", dashboard(baton, options));
  app.get("/own", (_request, response) => void response.send("own"));
  const server = app.listen(0, host);
  await once(server, "listening");
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return listening(t, server, close);
};

const inFastify: Serve = async (t, baton, { authenticate, host = "127.0.0.1", trustProxy = false } = {}) => {
  const app = Fastify({ trustProxy });
  app.get("/own", () => "own");
  await app.register(
    async (scope) => {
      await scope.register(batonDashboard, {
        prefix: "/jobs",
        baton,
        ...(authenticate && { authenticate: ({ headers }) => authenticate(headers) }),
      });
    },
    { prefix: "/inner" },
  );
  await app.listen({ port: 0, host });
  return listening(t, app.server, () => app.close());
};

const node = (t: TestContext, settings: Readonly<Record<string, string>> = {}): Promise<BatonNode> =>
  nodeHere(t, { tasks: [hello, slow], settings });

/** With headers that `fetch` does not let one set. */
function ask(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  method = "GET",
): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("end", () => resolve({ status: response.statusCode!, body: parsed(text) }));
    });
    request.on("error", reject).end();
  });
}

function parsed(text: string): Record<string, unknown> {
  return text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : { text };
}

async function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

/** The names of the events up to the end of the stream. */
async function eventsOf(response: Response, onText: (text: string) => void = () => {}): Promise<string[]> {
  let text = "";
  for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
    text += part;
    onText(text);
  }
  return [...text.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name!);
}

for (const [name, serve] of [
  ["Express", inExpress],
  ["Fastify", inFastify],
] as const) {
  describe(`the dashboard in ${name}`, () => {
    it("serves its pages, and all that they load, below the place where it is mounted", async (t) => {
      const { url } = await serve(t, await node(t));
      const bare = await fetch(`${url}/inner/jobs?from=mail`, { redirect: "manual" });
      assert.deepEqual([bare.status, bare.headers.get("location")], [308, "./jobs/?from=mail"]);
      const page = await fetch(`${url}/inner/jobs`);
      assert.equal(page.url, `${url}/inner/jobs/`);
      const loaded = [...(await page.text()).matchAll(/(?:src|href)="(\.[^"]+)"/g)].map(([, path]) => path!);
      assert.ok(loaded.length >= 3, loaded.join(" "));
      for (const path of [...loaded, "docs/", "openapi.json", "cluster/nodes"]) {
        const { status, url: asked } = await fetch(new URL(path, page.url));
        assert.equal(status, 200, path);
        assert.ok(asked.startsWith(`${url}/inner/jobs/`), asked);
      }
      assert.equal(await (await fetch(`${url}/own`)).text(), "own");
      const missing = await ask(`${url}/inner/jobs/nothing`);
      assert.deepEqual([missing.status, missing.body["error"]], [404, "NOT_FOUND"]);
      const wrong = await ask(`${url}/inner/jobs/schedules`, {}, "PATCH");
      assert.deepEqual([wrong.status, wrong.body["error"]], [405, "METHOD_NOT_ALLOWED"]);
    });

    it("takes jobs and tells of them, also of one whose path is named like the mount", async (t) => {
      const { url } = await serve(t, await node(t));
      const submitted = await post(`${url}/inner/jobs/jobs`, { task: "hello", payload: "Ada" });
      assert.equal(submitted.status, 200);
      const { job_id } = (await submitted.json()) as { job_id: string };
      const events = await eventsOf(await fetch(`${url}/inner/jobs/jobs/${job_id}/logs`, EVENTS));
      assert.equal(events.at(-1), "end");
      const result = await (await fetch(`${url}/inner/jobs/jobs/${job_id}/result`)).json();
      assert.equal((result as { result: unknown }).result, "hello Ada");
      const refused = await fetch(`${url}/inner/jobs/jobs`, { method: "POST", body: "{" });
      assert.equal(refused.status, 415);
    });

    it("streams events while they come, and ends with the node", async (t) => {
      const baton = await node(t);
      const { url } = await serve(t, baton);
      const { id } = await baton.submit(slow, null);
      const stopping: Promise<void>[] = [];
      const events = await eventsOf(await fetch(`${url}/inner/jobs/jobs/${id}/logs`, EVENTS), (text) => {
        if (text.includes("has begun")) stopping[0] ??= baton.stop({ hurry: true });
      });
      assert.ok(events.includes("log"), events.join(" "));
      await stopping[0];
      const { status, body } = await ask(`${url}/inner/jobs/cluster/nodes`);
      assert.deepEqual([status, body["error"]], [503, "STOPPED"]);
      await baton.start();
      assert.equal((await ask(`${url}/inner/jobs/cluster/nodes`)).status, 200);
    });

    it("without `authenticate` answers on this machine alone, where nobody else reaches the server", async (t) => {
      const baton = await node(t);
      const { url, port } = await serve(t, baton);
      const path = `${url}/inner/jobs/cluster/nodes`;
      assert.equal((await ask(path)).status, 200);
      assert.equal((await ask(path, { host: `localhost:${port}` })).status, 200);
      const strangers: Record<string, string>[] = [
        { "x-forwarded-for": "192.0.2.1" },
        { forwarded: "for=192.0.2.1" },
        { host: "evil.example" },
      ];
      for (const headers of strangers) {
        const { status, body } = await ask(path, headers);
        assert.equal(status, 401, JSON.stringify(headers));
        assert.match(String(body["message"]), /give the dashboard a function `authenticate`/);
      }
      const everywhere = await serve(t, baton, { host: "0.0.0.0" });
      for (const each of ["", "assets/none.js", "cluster/nodes", "livez", "nothing"])
        assert.equal((await ask(`${everywhere.url}/inner/jobs/${each}`)).status, 401, each);
      const always = await serve(t, await node(t, { ACCESS__REQUIRED: "always" }));
      assert.equal((await ask(`${always.url}/inner/jobs/cluster/nodes`)).status, 401);
    });

    it("with `authenticate` asks it for every request, and for nothing else", async (t) => {
      const baton = await node(t);
      const authenticate = async ({ "x-as": as }: IncomingHttpHeaders): Promise<Admission> => {
        if (as === "throws") throw new Error("the session store is away");
        if (as === "ann") return { name: "ann müller", permission: "operate" };
        return as as Admission;
      };
      const { url } = await serve(t, baton, { authenticate, host: "0.0.0.0" });
      const status = async (path: string, as?: string, method = "GET"): Promise<number> =>
        (await ask(`${url}/inner/jobs/${path}`, as === undefined ? {} : { "x-as": as }, method)).status;
      for (const path of ["", "cluster/nodes", "openapi.json", "livez", "nothing"])
        assert.equal(await status(path), 401, path);
      assert.equal(await status("", "read"), 200);
      assert.equal(await status("cluster/nodes", "read"), 200);
      assert.equal(await status("queues/mail/pause", "read", "POST"), 403);
      assert.equal(await status("queues/mail/pause", "ann", "POST"), 200);
      assert.equal(await status("cluster/nodes", "reed"), 500, "a permission that does not exist");
      assert.equal(await status("cluster/nodes", "throws"), 500);
      const { body: session } = await ask(`${url}/inner/jobs/session`, { "x-as": "ann" });
      assert.deepEqual(session, { principal: "application:ann_m_ller", permission: "operate", open: true });
      const login = await post(
        `${url}/inner/jobs/session`,
        { user: "ann", password: "secret" },
        { "x-as": "admin" },
      );
      assert.equal(login.status, 401);
      assert.match(((await login.json()) as { message: string }).message, /sign in there/);
      const audit = () => baton.services.journal.list({ kinds: ["audit"], limit: 10 });
      await eventually("the change in the audit", async () =>
        (await audit()).find(({ actor }) => actor === "application:ann_m_ller"),
      );
    });

    it("lets no page of another origin change anything with a cookie of the application", async (t) => {
      const { url } = await serve(t, await node(t), { authenticate: () => "admin", trustProxy: true });
      const pause = async (headers: Record<string, string>): Promise<number> =>
        (await ask(`${url}/inner/jobs/queues/mail/pause`, { cookie: "sid=1", ...headers }, "POST")).status;
      assert.equal(await pause({}), 403);
      assert.equal(await pause({ origin: "http://evil.example" }), 403);
      assert.equal(await pause({ origin: "https://app.example", "sec-fetch-site": "cross-site" }), 403);
      assert.equal(await pause({ origin: url }), 200);
      const proxied = { "x-forwarded-host": "app.example", "x-forwarded-for": "192.0.2.1" };
      assert.equal(await pause({ origin: "https://app.example", ...proxied }), 200);
      assert.equal(await pause({ origin: "https://other.example", ...proxied }), 403);
    });

    it("answers with 503 before the node is started", async (t) => {
      const started = await node(t);
      let ready = false;
      const baton: MountableNode = {
        get mounted() {
          if (!ready) throw new BatonError("STOPPED", "the node has not been started");
          return started.mounted;
        },
      };
      const { url } = await serve(t, baton);
      const { status, body } = await ask(`${url}/inner/jobs/cluster/nodes`);
      assert.deepEqual([status, body["error"]], [503, "STOPPED"]);
      ready = true;
      assert.equal((await ask(`${url}/inner/jobs/cluster/nodes`)).status, 200);
    });
  });
}

const EVENTS = { headers: { accept: "text/event-stream" } };

describe("in Express", () => {
  async function served(t: TestContext, app: ReturnType<typeof express>): Promise<string> {
    const server = app.listen(0, "127.0.0.1");
    await once(server, "listening");
    atEnd(t, () => new Promise((resolve) => server.close(resolve)));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it("a body that was read before is used as it was read", async (t) => {
    const app = express().use(express.json(), express.text());
    app.use("/", dashboard(await node(t)));
    const url = await served(t, app);
    const spaced = await fetch(`${url}/jobs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{ "task" : "hello" , "payload" : "Zoë" }',
    });
    assert.equal(spaced.status, 200);
    const wrong = await post(`${url}/jobs`, { task: "hello", prioritty: 1 });
    assert.equal(wrong.status, 400);
    assert.match(((await wrong.json()) as { message: string }).message, /prioritty/);
    const text = await fetch(`${url}/jobs`, { method: "POST", body: "hello" });
    assert.equal(text.status, 415);
  });

  it("one that is gone is an error of the application, which says what to change", async (t) => {
    const app = express().set("env", "test");
    app.use(async (request, _response, next) => {
      for await (const _ of request);
      next();
    });
    app.use("/jobs", dashboard(await node(t)));
    const caught: unknown[] = [];
    app.use(
      (
        error: unknown,
        _request: express.Request,
        response: express.Response,
        _next: express.NextFunction,
      ) => {
        caught.push(error);
        response.sendStatus(500);
      },
    );
    const url = await served(t, app);
    assert.equal((await post(`${url}/jobs/jobs`, { task: "hello" })).status, 500);
    assert.match(String(caught[0]), /mount the dashboard before what reads bodies/);
  });

  it("`authenticate` gets the request of Express, with what middleware has added", async (t) => {
    const app = express();
    app.use((request, _response, next) => {
      Object.assign(request, { user: { isAdmin: request.query["as"] === "admin" } });
      next();
    });
    const authenticate = (request: express.Request & { user?: { isAdmin: boolean } }) =>
      request.user?.isAdmin ? "admin" : null;
    app.use("/jobs", dashboard(await node(t), { authenticate }));
    const url = await served(t, app);
    assert.equal((await ask(`${url}/jobs/queues?as=admin`)).status, 200);
    assert.equal((await ask(`${url}/jobs/queues`)).status, 401);
  });
});

describe("in Fastify", () => {
  it("runs the hooks of its scope first, keeps their headers, and leaves them the whole address", async (t) => {
    const seen: string[] = [];
    const app = Fastify();
    app.addHook("onRequest", async (request, reply) => {
      reply.header("x-theirs", "kept");
      if (request.headers["x-tenant"] === undefined) await reply.code(418).send("no tenant");
    });
    app.addHook("onResponse", async (request) => void seen.push(request.url));
    const baton = await node(t);
    await app.register(batonDashboard, { prefix: "/:tenant/jobs", baton, authenticate: () => "read" });
    await app.listen({ port: 0, host: "127.0.0.1" });
    atEnd(t, () => app.close());
    const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
    const refused = await fetch(`${url}/acme/jobs/queues`);
    assert.equal(refused.status, 418);
    const answer = await fetch(`${url}/acme/jobs/queues?x=1`, { headers: { "x-tenant": "acme" } });
    assert.deepEqual([answer.status, answer.headers.get("x-theirs")], [200, "kept"]);
    await answer.text();
    assert.deepEqual(seen, ["/acme/jobs/queues", "/acme/jobs/queues?x=1"]);
    const inside = await app.inject({ url: "/acme/jobs/queues", headers: { "x-tenant": "acme" } });
    assert.equal(inside.statusCode, 200, "also without a socket");
  });

  it("closes although somebody reads events", async (t) => {
    const baton = await node(t);
    const served = await inFastify(t, baton);
    const reading = eventsOf(await fetch(`${served.url}/inner/jobs/cluster/live`, EVENTS));
    await served.close();
    assert.ok((await reading).length > 0);
    assert.ok(baton.running, "the node goes on");
  });
});

describe("a mount that is wrong", () => {
  it("is refused where it is made", async (t) => {
    const baton = await node(t);
    const message = (make: () => unknown): string => {
      try {
        make();
      } catch (error) {
        assert.ok(error instanceof BatonError);
        return `${error.code}: ${error.message}`;
      }
      return "accepted";
    };
    const wrong = [
      () => dashboard(null as never),
      () => dashboard({} as never),
      () => dashboard(baton, { authentciate: () => "admin" } as never),
      () => dashboard(baton, { authenticate: "admin" } as never),
    ];
    assert.deepEqual(wrong.map(message), [
      'BAD_CONFIG: "baton" must be a node, as createNode gives it',
      'BAD_CONFIG: "baton" must be a node, as createNode gives it',
      'BAD_CONFIG: "authentciate" is not an option of the dashboard; did you mean authenticate?',
      'BAD_CONFIG: "authenticate" must be a function from a request to a permission',
    ]);
    await assert.rejects(async () => Fastify().register(batonDashboard, { batton: baton } as never), {
      message: '"batton" is not an option of the dashboard; did you mean baton?',
    });
  });
});

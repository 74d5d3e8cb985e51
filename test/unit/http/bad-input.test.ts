import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import * as fc from "../../support/fast-check.ts";
import type { FastifyInstance } from "fastify";
import { BatonError } from "../../../src/core/errors.ts";
import { appOf, FakeNode, keptLog } from "./fake-node.ts";

type Method = "GET" | "POST" | "PUT" | "DELETE" | "PATCH" | "OPTIONS";

const log = keptLog();
let node: FakeNode;
let app: FastifyInstance;

before(async () => {
  node = new FakeNode();
  app = await appOf(node, { bodyLimitBytes: 100_000, log });
});
after(() => app.close());
beforeEach(() => node.kept.clear());
afterEach(() => assert.equal(node.kept.size, 0, "nothing may be stored by a refused request"));

async function send(method: Method, url: string, payload?: string, headers: Record<string, string> = {}) {
  const answer = await app.inject({
    method,
    url,
    payload,
    headers: payload === undefined ? headers : { "content-type": "application/json", ...headers },
  });
  return { status: answer.statusCode, body: answer.json(), headers: answer.headers };
}

const post = (body: unknown) => send("POST", "/jobs", JSON.stringify(body));

describe("a body that is not right", () => {
  const wrong: [unknown, string | undefined, RegExp][] = [
    [{}, "task", /"task" is missing; it must be a name/],
    [{ task: "a", prioritty: 1 }, "prioritty", /did you mean "priority"\?/],
    [{ task: "a", zzzzzzzzzz: 1 }, "zzzzzzzzzz", /known are task, payload, queue/],
    [{ task: "a", priority: "5" }, "priority", /whole number from -100 to 100.*not the string "5"/],
    [{ task: "a", priority: 1.5 }, "priority", /whole number/],
    [{ task: "a", priority: 101 }, "priority", /from -100 to 100/],
    [{ task: "a", priority: null }, "priority", /not null/],
    [{ task: 5 }, "task", /must be a name.*not the number 5/],
    [{ task: "" }, "task", /1 to 128 letters/],
    [{ task: "$(id)" }, "task", /must be a name/],
    [{ task: "a\r\nforged: yes" }, "task", /must be a name/],
    [{ task: "a".repeat(129) }, "task", /must be a name/],
    [{ task: "a", queue: "-x" }, "queue", /begins and ends with/],
    [{ task: "a", tags: "vip" }, "tags", /a list of at most 16 texts/],
    [{ task: "a", tags: ["vip", 3] }, "tags[1]", /not the number 3/],
    [{ task: "a", tags: ["x".repeat(65)] }, "tags[0]", /1 to 64 characters/],
    [{ task: "a", tags: [""] }, "tags[0]", /1 to 64 characters/],
    [{ task: "a", tags: Array.from({ length: 17 }, (_, i) => `t${i}`) }, "tags", /0 to 16 items/],
    [{ task: "a", run_at: "tomorrow" }, "run_at", /ISO-8601/],
    [{ task: "a", run_at: "2026-01-01T00:00:00" }, "run_at", /with its zone/],
    [{ task: "a", run_at: "2026-02-30T00:00:00Z" }, "run_at", /ISO-8601/],
    [{ task: "a", run_at: 1_767_225_600_000 }, "run_at", /ISO-8601.*not the number/],
    [{ task: "a", run_at: "2026-01-01T00:00:00Z", delay_ms: 1 }, "delay_ms", /not both/],
    [{ task: "a", delay_ms: -1 }, "delay_ms", /from 0 to/],
    [{ task: "a", max_attempts: 0 }, "max_attempts", /from 1 to 1000/],
    [{ task: "a", timeout_ms: 2 ** 31 }, "timeout_ms", /from 1 to 2147483647/],
    [{ task: "a", idempotency_key: "" }, "idempotency_key", /1 to 255/],
    [{ task: "a", idempotency_key: "a\u0000b" }, "idempotency_key", /without control characters/],
    [[], undefined, /1 to 10000 items/],
    [
      [{ task: "a" }, { task: "b" }, { task: "c" }, { task: "d", priority: 500 }],
      "[3].priority",
      /"\[3\]\.priority"/,
    ],
    [[{ task: "a" }, 7], "[1]", /must be an object, not the number 7/],
    [[{ task: "a" }, {}], "[1].task", /missing/],
    [[{ task: "a" }, { task: "b", que: "x" }], "[1].que", /did you mean "queue"\?/],
    [
      [{ task: "a" }, { task: "b", run_at: "2026-01-01T00:00:00Z", delay_ms: 1 }],
      "[1].delay_ms",
      /"\[1\]\.run_at" or "\[1\]\.delay_ms"/,
    ],
    ["text", undefined, /object or an array of objects, not the string "text"/],
    [null, undefined, /body/],
    [5, undefined, /not the number 5/],
  ];
  for (const [body, field, message] of wrong) {
    it(`is refused with its field and the remedy: ${JSON.stringify(body).slice(0, 70)}`, async () => {
      const answer = await post(body);
      assert.equal(answer.status, 400);
      assert.equal(answer.body.error, "BAD_REQUEST");
      assert.equal(answer.body.field, field);
      assert.match(answer.body.message, message);
    });
  }

  it("is refused with all of its mistakes, each with its field and the remedy", async () => {
    const jobs = [{ task: "a", prioritty: 1, delay_ms: -1 }, { task: "b" }, { queue: "a b" }];
    const { status, body } = await post(jobs);
    assert.deepEqual([status, body.error, body.field], [400, "BAD_REQUEST", "[0].prioritty"]);
    const fields = body.issues.map(({ field }: { readonly field: string }) => field);
    assert.deepEqual(fields.sort(), ["[0].delay_ms", "[0].prioritty", "[2].queue", "[2].task"]);
    assert.match(body.message, /did you mean "priority"\?; .*"\[2\]\.queue" must be a name/);
    const one = (await post({ task: "a", priority: 500 })).body;
    assert.equal(one.issues, undefined, "the message and the field say it already");
  });

  it("is refused with the first of them where it is large, so that a refusal costs no more than a job", async () => {
    const jobs = Array.from({ length: 3_000 }, () => ({ task: "a", x: 1 }));
    const { body } = await post(jobs);
    assert.deepEqual([body.field, body.issues], ["[0].x", undefined]);
    const some = (await post(jobs.slice(0, 100))).body;
    assert.equal(some.issues.length, 20);
    assert.match(some.message, /; and 80 more$/);
  });

  it("is refused when it is missing altogether, with or without a content type", async () => {
    const bare = await send("POST", "/jobs");
    const typed = await send("POST", "/jobs", "", { "content-type": "application/json" });
    for (const { status, body } of [bare, typed]) {
      assert.deepEqual([status, body.error], [400, "BAD_REQUEST"]);
      assert.match(body.message, /body is missing/);
    }
  });

  it("is refused when it is not JSON, and the place is told", async () => {
    for (const text of ["{", '{"task":"a"', "{'task':'a'}", "[1,]", "\u0000", '{"task":"a"} trailing']) {
      const { status, body } = await send("POST", "/jobs", text);
      assert.deepEqual([status, body.error], [400, "BAD_JSON"], text);
    }
    assert.match((await send("POST", "/jobs", '{"task": x}')).body.message, /position|token/);
  });

  it("is refused when it has another type, or is compressed", async () => {
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "nonsense",
    ]) {
      const { status, body } = await send("POST", "/jobs", '{"task":"a"}', { "content-type": type });
      assert.deepEqual([status, body.error], [415, "UNSUPPORTED_MEDIA_TYPE"], type);
    }
    const squeezed = await send("POST", "/jobs", "xx", { "content-encoding": "gzip" });
    assert.deepEqual([squeezed.status, squeezed.body.error], [415, "UNSUPPORTED_MEDIA_TYPE"]);
  });

  it("is refused one byte over the limit and taken at it", async () => {
    const frame = JSON.stringify({ task: "a", payload: "" }).length;
    const at = (bytes: number) => post({ task: "a", payload: "x".repeat(bytes - frame) });
    const over = await at(100_001);
    assert.deepEqual([over.status, over.body.error], [413, "BODY_TOO_LARGE"]);
    assert.equal((await at(100_000)).status, 200);
    node.kept.clear();
  });
});

describe("a payload", () => {
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

  it("may have 64 levels and not one more, alone and in an array", async () => {
    assert.equal((await send("POST", "/jobs", `{"task":"a","payload":${nested(64)}}`)).status, 200);
    assert.equal((await send("POST", "/jobs", `[{"task":"a","payload":${nested(64)}}]`)).status, 200);
    node.kept.clear();
    for (const text of [`{"task":"a","payload":${nested(65)}}`, `[{"task":"a","payload":${nested(65)}}]`]) {
      const { status, body } = await send("POST", "/jobs", text);
      assert.deepEqual([status, body.error], [400, "BAD_JSON"]);
      assert.match(body.message, /deeper than 64 levels/);
    }
  });

  it("of 100,000 levels is refused without a crash", async () => {
    const wide = await appOf(node, { bodyLimitBytes: 10_000_000, log });
    try {
      for (const text of [
        nested(100_000),
        `{"task":"a","payload":${nested(100_000)}}`,
        '{"a":'.repeat(100_000),
      ]) {
        const headers = { "content-type": "application/json" };
        const answer = await wide.inject({ method: "POST", url: "/jobs", payload: text, headers });
        assert.deepEqual([answer.statusCode, answer.json().error], [400, "BAD_JSON"]);
      }
    } finally {
      await wide.close();
    }
  });

  it("that would reach a prototype is refused, however it is spelled", async () => {
    for (const text of [
      '{"task":"a","payload":{"__proto__":{"polluted":1}}}',
      '{"task":"a","payload":{"\\u005f_proto__":{"polluted":1}}}',
      '{"task":"a","payload":[{"deep":{"__proto__":null}}]}',
      '{"__proto__":{"task":"a"}}',
      '{"task":"a","payload":{"constructor":{"prototype":{"polluted":1}}}}',
    ]) {
      const { status, body } = await send("POST", "/jobs", text);
      assert.deepEqual([status, body.error], [400, "BAD_JSON"], text);
    }
    assert.equal(({} as { polluted?: number }).polluted, undefined);
  });

  it("may have a key called constructor, kept as it is", async () => {
    const { status } = await post({ task: "a", payload: { constructor: "Bob the Builder" } });
    assert.equal(status, 200);
    assert.equal([...node.kept.values()][0]!.job.payload, '{"constructor":"Bob the Builder"}');
    node.kept.clear();
  });

  it("with shell and template characters is only data", async () => {
    const payload = { cmd: "$(id); `id` ${id} ' OR 1=1 --", "": { "a b": "\u2028\ud800" } };
    assert.equal((await post({ task: "a", payload })).status, 200);
    assert.deepEqual(JSON.parse([...node.kept.values()][0]!.job.payload), payload);
    node.kept.clear();
  });
});

describe("a path or query that is not right", () => {
  it("is refused with BAD_ID when the id is none", async () => {
    const uuid = "0198c0de-0000-7000-8000-000000000000";
    for (const id of [uuid, `a b-${uuid}`, "n".repeat(5_000), "..%2f..%2fetc", "%00"]) {
      for (const [method, path] of [
        ["GET", ""],
        ["GET", "/result"],
        ["GET", "/logs"],
        ["POST", "/cancel"],
        ["POST", "/retry"],
        ["DELETE", ""],
      ] as const) {
        const { status, body } = await send(method, `/jobs/${id.replaceAll(" ", "%20")}${path}`);
        assert.deepEqual([status, body.error, body.field], [400, "BAD_ID", "id"], `${method} ${id}${path}`);
      }
    }
  });

  it("is refused when a name is none", async () => {
    for (const url of ["/schedules/-x", "/schedules/a%20b", "/schedules/%0d%0a"]) {
      const { status, body } = await send("GET", url);
      assert.deepEqual([status, body.error, body.field], [400, "BAD_REQUEST", "name"], url);
    }
  });

  it("is refused with the parameter at fault", async () => {
    const wrong: [string, string, RegExp][] = [
      ["limit=0", "limit", /from 1 to 1000/],
      ["limit=1001", "limit", /from 1 to 1000/],
      ["limit=ten", "limit", /whole number.*not the string "ten"/],
      ["limit=", "limit", /whole number/],
      ["limit=1.5", "limit", /whole number/],
      ["limit=1&limit=2", "limit", /not an array/],
      ["limit=99999999999999999999", "limit", /whole number/],
      ["status=done", "status", /one of scheduled, queued/],
      ["status=complete", "status", /did you mean "completed"\?/],
      ["since=yesterday", "since", /ISO-8601/],
      ["since=2026-01-01", "since", /ISO-8601/],
      ["since=2026-01-01T00:00:00+02:00", "since", /%2B/],
      ["stauts=failed", "stauts", /did you mean "status"\?/],
      ["cursor=zzz", "cursor", /not one of ours/],
    ];
    for (const [query, field, message] of wrong) {
      const { status, body } = await send("GET", `/admin/jobs?${query}`);
      assert.deepEqual([status, body.error, body.field], [400, "BAD_REQUEST", field], query);
      assert.match(body.message, message);
    }
    const id = node.add();
    for (const query of ["after=-1", "after=x", "limit=5001"]) {
      assert.equal((await send("GET", `/jobs/${id}/logs?${query}`)).status, 400, query);
    }
    const stream = { accept: "text/event-stream", "last-event-id": "x" };
    assert.equal((await send("GET", `/jobs/${id}/logs`, undefined, stream)).body.field, "last-event-id");
    node.kept.clear();
  });

  it("is not found, with what may have been meant", async () => {
    const { status, body } = await send("GET", "/job");
    assert.deepEqual([status, body.error], [404, "NOT_FOUND"]);
    assert.match(body.message, /did you mean \/jobs\?/);
    for (const url of ["/", "/health/", "/admin", "/xyz?a=1", "/jobs/a/b/c"]) {
      assert.equal((await send("GET", url)).status, 404, url);
    }
    assert.equal((await send("POST", "/nowhere", "<xml/>", { "content-type": "text/xml" })).status, 404);
  });

  it("is refused when it is not a URL", async () => {
    const { status, body } = await send("GET", "/jobs/%zz");
    assert.deepEqual([status, body.error], [400, "BAD_REQUEST"]);
  });

  it("is refused with the methods that there are", async () => {
    const wrong: [Method, string, string][] = [
      ["PATCH", "/jobs", "GET, HEAD, POST"],
      ["PUT", "/jobs", "GET, HEAD, POST"],
      ["DELETE", "/health", "GET, HEAD"],
      ["PATCH", "/schedules/x", "DELETE, GET, HEAD, PUT"],
      ["POST", `/jobs/${node.id()}`, "DELETE, GET, HEAD"],
      ["GET", `/jobs/${node.id()}/cancel`, "POST"],
      ["OPTIONS", "/jobs", "GET, HEAD, POST"],
      ["PATCH", "/schedules/preview", "DELETE, GET, HEAD, POST, PUT"],
    ];
    for (const [method, url, allow] of wrong) {
      const { status, body, headers } = await send(method, url, "not even json", { "content-type": "x/y" });
      assert.deepEqual([status, body.error], [405, "METHOD_NOT_ALLOWED"], `${method} ${url}`);
      assert.equal(headers["allow"], allow);
    }
  });
});

describe("a fault of ours", () => {
  afterEach(() => {
    node.trouble = null;
    log.lines.length = 0;
  });

  it("is told without its message, and logged with it under the same id", async () => {
    node.trouble = new Error("SELECT secret FROM /var/lib/baton.db");
    const { status, body, headers } = await send("POST", "/jobs", '{"task":"a"}', {
      "x-request-id": "req-1",
    });
    assert.equal(status, 500);
    assert.equal(body.error, "INTERNAL");
    assert.equal(body.request_id, "req-1");
    assert.doesNotMatch(JSON.stringify(body), /SELECT|baton\.db|stack|fake-node/);
    assert.equal(headers["retry-after"], "1");
    assert.equal(log.lines.length, 1);
    assert.equal(log.lines[0]!.fields["reqId"], "req-1");
    assert.equal(log.lines[0]!.fields["error"], node.trouble);
  });

  it("is not told either when it is one of our own that no caller should see", async () => {
    node.trouble = new BatonError("BAD_CONFIG", "password is hunter2");
    const { status, body } = await post({ task: "a" });
    assert.deepEqual([status, body.error], [500, "INTERNAL"]);
    assert.doesNotMatch(JSON.stringify(body), /hunter2/);
  });

  it("that may pass asks to come back", async () => {
    node.trouble = new BatonError("STORE_UNAVAILABLE", "the store does not answer");
    const { status, body, headers } = await post({ task: "a" });
    assert.deepEqual([status, body.error, headers["retry-after"]], [503, "STORE_UNAVAILABLE", "1"]);
    assert.equal(log.lines.length, 0);
  });
});

describe("whatever is sent", () => {
  const anyJson = fc.oneof(
    fc.json({ maxDepth: 6 }),
    fc
      .record(
        {
          task: fc.oneof(fc.constant("a"), fc.jsonValue()),
          payload: fc.jsonValue(),
          queue: fc.oneof(fc.constant("q"), fc.jsonValue()),
          priority: fc.oneof(fc.integer(), fc.double(), fc.jsonValue()),
          run_at: fc.oneof(
            fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
            fc.jsonValue(),
          ),
          delay_ms: fc.oneof(fc.maxSafeInteger(), fc.jsonValue()),
          max_attempts: fc.oneof(fc.integer(), fc.jsonValue()),
          timeout_ms: fc.oneof(fc.integer(), fc.jsonValue()),
          idempotency_key: fc.oneof(fc.string({ unit: "binary" }), fc.jsonValue()),
        },
        { requiredKeys: [] },
      )
      .map((body) => JSON.stringify(body)),
    fc.string({ unit: "binary" }),
  );
  const routes = [
    ["POST", "/jobs"],
    ["PUT", "/schedules/x"],
    ["POST", "/schedules"],
    ["POST", "/schedules/preview"],
    ["POST", "/jobs/node-a-0198c0de-0000-7000-8000-000000000000/cancel"],
  ] as const;

  it("as a body never gives a 5xx, and a refusal is always flat", async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...routes), anyJson, async ([method, url], text) => {
        const { status, body } = await send(method, url, text);
        assert.ok(status < 500, `${status} ${JSON.stringify(body)}`);
        if (status < 400) return;
        assert.equal(typeof body.error, "string");
        assert.equal(typeof body.message, "string");
      }),
      { numRuns: 400 },
    );
    node.kept.clear();
  });

  it("as a path or query never gives a 5xx", async () => {
    const path = fc.constantFrom(
      "/jobs/",
      "/schedules/",
      "/queues/",
      "/admin/jobs?",
      "/admin/jobs?limit=",
      "/",
    );
    await fc.assert(
      fc.asyncProperty(path, fc.string({ unit: "binary" }), fc.boolean(), async (start, rest, encoded) => {
        const tail = encoded ? encodeURIComponent(rest.toWellFormed()) : rest.replaceAll(/[^\x21-\x7e]/g, "");
        const answer = await app.inject({ method: "GET", url: start + tail });
        assert.ok(answer.statusCode < 500, answer.body);
      }),
      { numRuns: 500 },
    );
  });
});

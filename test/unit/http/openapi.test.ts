import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { FastifyInstance } from "fastify";
import { OPERATIONS } from "../../../src/api/operation-table.ts";
import { appOf, FakeNode } from "./fake-node.ts";
import { column } from "../../support/columns.ts";

interface Described {
  operationId: string;
  summary: string;
  tags: string[];
  parameters?: { name: string; in: string; required?: boolean; schema: object }[];
  requestBody?: { content: Record<string, { schema: Record<string, unknown> }> };
  responses: Record<string, { description: string; content?: Record<string, { schema: object }> }>;
}

let app: FastifyInstance;
let document: {
  openapi: string;
  info: { title: string; version: string };
  paths: Record<string, Record<string, Described>>;
};

before(async () => {
  const node = new FakeNode();
  app = await appOf(node, { bodyLimitBytes: 1_000 });
  document = (await app.inject("/openapi.json")).json();
});
after(() => app.close());

describe("the OpenAPI document", () => {
  it("has the version of the node and the form of OpenAPI 3.1", () => {
    assert.equal(document.openapi, "3.1.0");
    assert.deepEqual([document.info.title, document.info.version], ["Baton", "0.0.0-test"]);
    for (const [path, methods] of Object.entries(document.paths)) {
      assert.match(path, /^\//);
      for (const [method, described] of Object.entries(methods)) {
        assert.match(method, /^(get|post|put|delete)$/, `${method} ${path}`);
        assert.ok(described.summary.length > 0);
        const placeholders = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
        const params = (described.parameters ?? []).filter((parameter) => parameter.in === "path");
        assert.deepEqual(column(params, "name"), placeholders, `${method} ${path}`);
        assert.ok(params.every((parameter) => parameter.required === true));
        for (const [status, reply] of Object.entries(described.responses)) {
          assert.match(status, /^([1-5]\d\d|[45]XX)$/i);
          assert.equal(typeof reply.description, "string");
        }
      }
    }
  });

  it("lists every operation of the table and nothing else", () => {
    const listed = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(
        ([method, { operationId }]) => `${method.toUpperCase()} ${path} ${operationId}`,
      ),
    );
    const rows = OPERATIONS.map((operation) => `${operation.method} ${operation.path} ${operation.name}`);
    assert.deepEqual(listed.sort(), rows.sort());
  });

  it("describes bodies, queries, answers and refusals", () => {
    const submit = document.paths["/jobs"]!["post"]!;
    const branches = submit.requestBody!.content["application/json"]!.schema["anyOf"] as Record<
      string,
      unknown
    >[];
    assert.deepEqual(
      branches.map((branch) => branch["type"]),
      ["object", "array"],
    );
    const list = document.paths["/admin/jobs"]!["get"]!;
    assert.deepEqual(column(list.parameters!, "name"), [
      "status",
      "task",
      "queue",
      "tag",
      "since",
      "until",
      "error_code",
      "limit",
      "cursor",
    ]);
    assert.deepEqual(Object.keys(document.paths["/jobs/{id}/cancel"]!["post"]!.responses), [
      "200",
      "202",
      "4XX",
      "5XX",
    ]);
  });

  it("refers to nothing that is not in it", () => {
    const text = JSON.stringify(document);
    for (const [, reference] of text.matchAll(/"\$ref":"([^"]+)"/g)) assert.fail(`dangling ${reference}`);
  });
});

describe("the docs", () => {
  it("are a page whose files all come from this node", async () => {
    const moved = await app.inject("/docs");
    assert.deepEqual([moved.statusCode, moved.headers["location"]], [308, "docs/"]);
    const page = await app.inject("/docs/");
    assert.equal(page.statusCode, 200);
    assert.match(String(page.headers["content-security-policy"]), /require-trusted-types-for/);
    assert.match(String(page.headers["content-type"]), /text\/html/);
    const links = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1]!);
    assert.ok(links.length > 0);
    for (const link of links) {
      assert.doesNotMatch(link, /^(https?:)?\/\//);
      const file = await app.inject(new URL(link, "http://localhost/docs/").pathname);
      assert.equal(file.statusCode, 200, link);
    }
  });
});

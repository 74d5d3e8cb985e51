import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { neededFor } from "../../../dashboard/src/api/permissions.ts";
import { OPERATIONS } from "../../../src/api/operation-table.ts";

describe("what the page thinks one needs", () => {
  it("is what the table of operations says, for every route that the page names", () => {
    const pages = globSync("dashboard/src/**/*.{ts,tsx}").map((file) => readFileSync(file, "utf8"));
    const named = new Set(
      pages
        .join()
        .match(/"(?:GET|POST|PUT|DELETE) \/[^"]*"/g)
        ?.map((text) => text.slice(1, -1)),
    );
    const rows = OPERATIONS.map(({ method, path, permission }) => [`${method} ${path}`, permission] as const);
    const used = rows.filter(([route, permission]) => named.has(route) && permission !== "public");
    assert.ok(used.length > 30, `${used.length} routes`);
    const told = used.map(([route]) => [route, neededFor(route as Parameters<typeof neededFor>[0])]);
    assert.deepEqual(told, used);
  });
});

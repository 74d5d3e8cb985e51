import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Operation } from "../../../src/api/operation.ts";
import { OUTSIDE } from "../../../src/transport/hop-headers.ts";
import { OPERATIONS } from "../../../src/api/operation-table.ts";

const rows: readonly Operation[] = OPERATIONS;
/** Reading that not everybody may who reads. */
const RESERVED = new Set(["list_tokens", "list_users", "get_settings"]);

describe("the table of operations", () => {
  it("has each name and each route once", () => {
    assert.equal(new Set(rows.map((row) => row.name)).size, rows.length);
    assert.equal(new Set(rows.map((row) => `${row.method} ${row.path}`)).size, rows.length);
  });

  it("lets nobody change anything by reading, in method or in permission", () => {
    for (const row of rows) {
      if (row.method === "GET") assert.equal(row.mutates, false, row.name);
      // Whoever logs in is nobody yet, and whoever logs out may do nothing but read.
      if (row.path === "/session") continue;
      if (RESERVED.has(row.name)) assert.equal(row.mutates, false, row.name);
      else assert.equal(row.mutates, !["read", "public"].includes(row.permission), row.name);
    }
  });

  it("sends what concerns a job to its owner, new work anywhere, and changes of cluster state to the leader", () => {
    // The node that is asked passes a request to drain on to its node, and a pause to the leader.
    const elsewhere = new Map([
      ["submit_jobs", "any"],
      ["call_function", "any"],
      ["drain_node", "here"],
      ["resume_node", "here"],
      ["pause_queue", "here"],
      ["resume_queue", "here"],
      // Each job is asked for at its own node.
      ["bulk_jobs", "here"],
      // Every node has all credentials, and tells the others.
      ...["login", "logout", "create_token", "revoke_token"].map((name) => [name, "here"] as const),
      ...["add_user", "set_password", "remove_user"].map((name) => [name, "here"] as const),
    ]);
    const id = "node-a-0198c0de-0000-7000-8000-000000000000";
    for (const row of rows) {
      const params = { id, name: "x", task: "x" };
      const input = { params, query: {}, body: {}, headers: {}, inbound: OUTSIDE, principal: null };
      const target = typeof row.target === "function" ? row.target(input) : row.target;
      if (row.path.startsWith("/jobs/{id}")) assert.deepEqual(target, { at: "owner", job: id }, row.name);
      // Nothing of the controller API is passed on: whoever does not lead says who does.
      else if (row.path.startsWith("/v1/")) assert.deepEqual(target, { at: "here" }, row.name);
      else if (row.mutates) assert.deepEqual(target, { at: elsewhere.get(row.name) ?? "leader" }, row.name);
    }
  });
});

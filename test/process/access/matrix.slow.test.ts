/** Every route with every permission, at the node that answers and through another one. */

import assert from "node:assert/strict";
import { it } from "node:test";
import type { Operation } from "../../../src/api/operation.ts";
import { OPERATIONS } from "../../../src/api/operation-table.ts";
import { allows, PERMISSIONS } from "../../../src/core/access/permissions.ts";
import { listedFile, TEST_SECRET } from "../../support/host-cluster.ts";
import { PeerCluster, QUICK_PEERS } from "../../support/peer-cluster.ts";
import { TEST_TOKEN } from "../../support/process-node.ts";
import { eventually } from "../../support/wait.ts";
import { ask } from "./callers.ts";
import type { Asked } from "./callers.ts";

const SETTINGS = { ...QUICK_PEERS, HTTP__HOST: "0.0.0.0", SECRET: TEST_SECRET };

it("who may do what is the same directly and through another node", async (t) => {
  const cluster = await PeerCluster.start(t, { file: listedFile, settings: SETTINGS });
  const { name: leader } = await cluster.leader();
  const [owner, other] = cluster.names.filter((name) => name !== leader) as [string, string];
  const at = (name: string): string => cluster.url(name);
  const tokens: Record<string, string> = {};
  for (const permission of PERMISSIONS) {
    const body = { name: permission, permission };
    const { body: made } = await ask(at(owner), "/tokens", { method: "POST", token: TEST_TOKEN, body });
    tokens[permission] = made["token"] as string;
  }
  const job = await cluster.jobAt(owner, { task: "unheard-of" });
  const rows = (OPERATIONS as readonly Operation[]).filter(({ path }) => path !== "/session");
  for (const row of rows) {
    const path = row.path
      .replace("{id}", row.path.startsWith("/tokens") ? "nothing" : job)
      .replaceAll(/\{\w+\}/g, "nothing")
      .replace(/^\/functions\/.*/, "$&?timeout_ms=1");
    for (const permission of [null, ...PERMISSIONS]) {
      // Who may remove the job would take it from those who come after.
      if (row.name === "delete_job" && permission !== null && allows(permission, row.permission)) continue;
      const options = {
        method: row.method,
        ...(permission !== null && { token: tokens[permission]! }),
        ...(row.method !== "GET" && { body: { task: 7 } }),
      };
      const [direct, passed] = [await ask(at(owner), path, options), await ask(at(other), path, options)];
      const label = `${permission}: ${row.method} ${row.path} ${direct.status} ${passed.status} ${passed.text}`;
      // A refusal for want of a permission names it; there are others.
      const verdict = ({ status, body }: Asked): string =>
        status === 401 || (status === 403 && body["needs"] !== undefined) ? String(status) : "in";
      const expected =
        row.permission === "public"
          ? "in"
          : permission === null
            ? "401"
            : allows(permission, row.permission)
              ? "in"
              : "403";
      assert.deepEqual([verdict(direct), verdict(passed)], [expected, expected], label);
      if (expected !== "in") assert.equal(passed.body["error"], direct.body["error"], label);
    }
  }

  // What was passed on is told of by the node that the caller spoke to, once, with the caller's name.
  const cancelled = await ask(at(other), `/jobs/${job}/cancel`, {
    method: "POST",
    token: tokens["operate"]!,
    body: { reason: "matrix" },
  });
  assert.equal(cancelled.headers.get("x-baton-node"), owner, cancelled.text);
  const entries = await eventually("the audit", async () => {
    const { body } = await ask(at(other), `/cluster/journal?kind=audit&subject=${job}&limit=100`, {
      token: TEST_TOKEN,
    });
    const found = (
      body["entries"] as { actor: string; node: string; detail: Record<string, unknown> }[]
    ).filter(({ detail }) => (detail["params"] as Record<string, unknown>)["reason"] === "matrix");
    return found.length > 0 ? found : null;
  });
  assert.deepEqual(
    entries.map(({ actor, node, detail }) => [actor, node, detail["operation"], detail["served_by"]]),
    [["token:operate", other, "cancel_job", owner]],
  );
});

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { LEADER_LOCKS, leaderLock } from "../../../../src/leadership/postgres/advisory-lock.ts";
import { acceptsWork, countNodes } from "../../../../src/core/node.ts";
import { LEADER_ROLES } from "../../../../src/core/leadership/term.ts";
import { applicationName, applicationPrefix } from "../../../../src/platform/drivers/postgres/session.ts";
import { candidate } from "../../../support/lock-candidates.ts";

describe("what is known of a node", () => {
  test("only an active one takes new work", () => {
    const taking = ["joining", "active", "draining", "dead", "hibernating"].filter((status) =>
      acceptsWork({ status }),
    );
    assert.deepEqual(taking, ["active"]);
  });

  test("nodes in a status that is not known count in the total only", () => {
    const nodes = ["active", "dead", "active", "joining", "draining", "hibernating"].map((status) => ({
      status,
    }));
    assert.deepEqual(countNodes(nodes), { joining: 1, active: 2, draining: 1, dead: 1, total: 6 });
  });
});

describe("the name of a node's connections", () => {
  test("begins with its incarnation, and fits what the server keeps", () => {
    const incarnation = "0f8fad5b-d9cb-469f-a165-70867728950e";
    const name = applicationName(candidate("n".repeat(63), incarnation));
    assert.equal(name.length, 63);
    assert.ok(name.startsWith(applicationPrefix(incarnation)));
    assert.equal(applicationName(candidate("ada", incarnation)), `baton/${incarnation}/ada`);
  });
});

describe("the advisory locks of leaders", () => {
  test("spell BATON in the default schema, one for each role", () => {
    const numbers = Object.entries(LEADER_LOCKS).map(([role, key]) => [role, key.toString(16)]);
    // Nodes of the version before use these too.
    assert.deepEqual(numbers.slice(0, 3), [
      ["scheduler", "4241544f4e01"],
      ["metrics_aggregator", "4241544f4e02"],
      ["log_compactor", "4241544f4e03"],
    ]);
    assert.equal(leaderLock("scheduler", "baton"), LEADER_LOCKS.scheduler);
    assert.equal(new Set(Object.values(LEADER_LOCKS)).size, LEADER_ROLES.length);
  });

  test("differ from schema to schema and role to role, and fit a bigint", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.stringMatching(/^[a-z_][a-z0-9_]{0,20}$/), { maxLength: 20 }),
        (schemas) => {
          const keys = schemas.flatMap((schema) => LEADER_ROLES.map((role) => leaderLock(role, schema)));
          assert.equal(new Set(keys).size, keys.length);
          for (const key of keys) assert.equal(BigInt.asIntN(64, key), key);
        },
      ),
    );
  });
});

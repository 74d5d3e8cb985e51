import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import {
  allows,
  isPermission,
  PERMISSIONS,
  type Principal,
  readPrincipal,
  writePrincipal,
} from "../../../../src/core/access/permissions.ts";
import {
  changed,
  type Credential,
  isAlive,
  isForgotten,
  isSame,
  merge,
  removed,
  SESSION_IDLE_MS,
  useStep,
} from "../../../../src/core/access/credential.ts";
import { credential } from "../../access/world.ts";

const DAY_MS = 86_400_000;

/** Copies of one credential as nodes could have them, with few values so that they often collide. */
const copies: fc.Arbitrary<Credential> = fc
  .record({
    permission: fc.constantFrom(...PERMISSIONS),
    secret: fc.constantFrom("x", "y"),
    version: fc.integer({ min: 1, max: 4 }),
    node: fc.constantFrom("a", "b", "c"),
    lastUsedAt: fc.option(fc.integer({ min: 0, max: 3 }), { nil: null }),
    removedAt: fc.option(fc.integer({ min: 5, max: 6 }), { nil: null }),
  })
  .map((fields) => credential({ ...fields, secret: fields.removedAt === null ? fields.secret : null }));

describe("the merge of credentials", () => {
  it("is commutative", () =>
    fc.assert(
      fc.property(copies, copies, (a, b) => {
        assert.deepEqual(merge(a, b), merge(b, a));
        assert.ok(isSame(merge(a, b), merge(b, a)));
      }),
    ));

  it("is associative", () =>
    fc.assert(
      fc.property(copies, copies, copies, (a, b, c) =>
        assert.deepEqual(merge(merge(a, b), c), merge(a, merge(b, c))),
      ),
    ));

  it("is idempotent, also with what was merged before", () =>
    fc.assert(
      fc.property(copies, copies, (a, b) => {
        assert.deepEqual(merge(a, a), a);
        assert.deepEqual(merge(merge(a, b), b), merge(a, b));
      }),
    ));

  it("never loses a revocation", () =>
    fc.assert(
      fc.property(fc.array(copies, { minLength: 1, maxLength: 8 }), (all) => {
        const merged = all.reduce(merge);
        assert.equal(
          merged.removedAt !== null,
          all.some(({ removedAt }) => removedAt !== null),
        );
        assert.equal(merged.removedAt !== null, merged.secret === null);
      }),
    ));

  it("keeps the last writer among the living, and the latest use of all", () =>
    fc.assert(
      fc.property(fc.array(copies, { minLength: 1, maxLength: 8 }), (all) => {
        const merged = all.reduce(merge);
        const alive = all.filter(({ removedAt }) => removedAt === null);
        if (alive.length === all.length)
          assert.equal(merged.version, Math.max(...alive.map(({ version }) => version)));
        const uses = all.flatMap(({ lastUsedAt }) => lastUsedAt ?? []);
        assert.equal(merged.lastUsedAt, uses.length === 0 ? null : Math.max(...uses));
      }),
    ));

  it("takes a change for newer than what it was made of, and a removal for final", () => {
    const first = credential();
    const second = changed(first, "b", { permission: "read" });
    assert.deepEqual(merge(first, second), second);
    const gone = removed(first, "a", 9);
    assert.deepEqual(merge(changed(second, "c", {}), gone), gone);
    assert.equal(gone.secret, null);
  });
});

describe("the time of credentials", () => {
  it("a token lives until it expires or is removed", () => {
    assert.ok(isAlive(credential(), 10 ** 15));
    assert.ok(isAlive(credential({ expiresAt: 100 }), 99));
    assert.ok(!isAlive(credential({ expiresAt: 100 }), 100));
    assert.ok(!isAlive(removed(credential(), "a", 1), 1));
    assert.ok(!isAlive(credential({ secret: null }), 1));
  });

  it("a session ends twelve hours after its last use, and at its own end in any case", () => {
    const session = credential({ kind: "session", createdAt: 0, expiresAt: 7 * DAY_MS });
    assert.ok(isAlive(session, SESSION_IDLE_MS - 1));
    assert.ok(!isAlive(session, SESSION_IDLE_MS));
    assert.ok(isAlive({ ...session, lastUsedAt: DAY_MS }, DAY_MS + SESSION_IDLE_MS - 1));
    assert.ok(!isAlive({ ...session, lastUsedAt: 7 * DAY_MS - 1 }, 7 * DAY_MS));
  });

  it("what never expires is never forgotten, not even its tombstone", () => {
    assert.ok(!isForgotten(credential(), 10 ** 15));
    assert.ok(!isForgotten(removed(credential(), "a", 0), 10 ** 15));
  });

  it("what has expired is shown for a month, a session for a day", () => {
    const token = credential({ expiresAt: DAY_MS });
    assert.ok(!isForgotten(token, 31 * DAY_MS - 1));
    assert.ok(isForgotten(token, 31 * DAY_MS));
    assert.ok(isForgotten(removed(token, "a", 1), 31 * DAY_MS));
    const session = credential({ kind: "session", expiresAt: 7 * DAY_MS });
    assert.ok(!isForgotten(session, SESSION_IDLE_MS + DAY_MS - 1));
    assert.ok(isForgotten(session, SESSION_IDLE_MS + DAY_MS));
  });

  it("a use is noted in steps, so that all nodes note the same", () => {
    assert.equal(useStep(1_234_567), 1_200_000);
    assert.equal(useStep(1_200_000), 1_200_000);
  });
});

describe("permissions", () => {
  it("include those before them", () => {
    for (const [at, has] of PERMISSIONS.entries()) {
      assert.ok(allows(has, "public"));
      for (const [needed, needs] of PERMISSIONS.entries()) assert.equal(allows(has, needs), needed <= at);
    }
    assert.ok(!isPermission("public"));
    assert.ok(!isPermission(undefined));
  });
});

describe("a principal on its way to another node", () => {
  const principals: Principal[] = [
    { kind: "token", name: "ci", permission: "submit", id: "0123456789abcdef" },
    { kind: "user", name: "ann@example.org", permission: "admin", id: "u-1" },
    { kind: "loopback", name: "loopback", permission: "admin", id: null },
    { kind: "node", name: "node-a.internal", permission: "read", id: null },
  ];

  it("arrives as it left", () => {
    for (const each of principals) assert.deepEqual(readPrincipal(writePrincipal(each)), each);
  });

  it("is nobody when it is anything else", () => {
    const bad = [
      "",
      " ",
      "admin",
      "admin token",
      "root token ci",
      "public token ci",
      "admin god ci",
      "admin token ci id more",
      "admin token c\ni",
      "admin  token ci",
      "admin token ",
      `admin token ${"x".repeat(200)}`,
    ];
    for (const text of bad) assert.equal(readPrincipal(text), null, JSON.stringify(text));
  });
});

import assert from "node:assert/strict";
import { changed, type Credential, removed } from "../../../src/core/access/credential.ts";
import type { Promises, StoreWorld } from "../../support/store-world.ts";
import { column } from "../../support/columns.ts";

function credential(id: string, fields: Partial<Credential> = {}): Credential {
  return {
    id,
    kind: "token",
    name: `name-of-${id}`,
    permission: "submit",
    secret: `hash-of-${id}`,
    owner: null,
    createdAt: 1_000,
    createdBy: "user:ann",
    expiresAt: null,
    lastUsedAt: null,
    removedAt: null,
    version: 1,
    node: "node-a",
    ...fields,
  };
}

async function all(world: StoreWorld, after = 0): Promise<Credential[]> {
  const { credentials } = await world.store.access.changes(after);
  return credentials.map((each) => ({ ...each })).sort((a, b) => (a.id < b.id ? -1 : 1));
}

async function revision(world: StoreWorld): Promise<number> {
  return (await world.store.access.changes(Number.MAX_SAFE_INTEGER)).revision;
}

export const accessPromises: Promises = {
  "credentials are kept as they were given, field by field": async (world) => {
    const whole = credential("b", {
      kind: "session",
      name: "ann@example",
      permission: "admin",
      secret: "scrypt$1$2$3$x$y",
      owner: "u mark",
      createdBy: "setting:access.token",
      createdAt: 1_767_225_600_123,
      expiresAt: 1_767_225_600_999,
      lastUsedAt: 1_767_225_600_500,
      version: 7,
    });
    const bare = credential("a");
    assert.deepEqual(await world.store.access.put([whole, bare]), [whole, bare]);
    assert.deepEqual(await all(world), [bare, whole]);
  },

  "only what was written behind a revision is told": async (world) => {
    const { access } = world.store;
    assert.deepEqual(await access.changes(0), { revision: 0, credentials: [] });
    await access.put([credential("a"), credential("b")]);
    const first = await revision(world);
    assert.ok(first > 0);
    assert.deepEqual(await all(world, first), []);
    await access.put([credential("c")]);
    await access.put([removed(credential("a"), "node-b", 2_000)]);
    assert.deepEqual(column(await all(world, first), "id"), ["a", "c"]);
    assert.ok((await revision(world)) > first);
  },

  "what changes nothing is not told again": async (world) => {
    const { access } = world.store;
    const second = changed(credential("a"), "node-b", { permission: "read" });
    await access.put([second]);
    const before = await revision(world);
    assert.deepEqual(await access.put([credential("a")]), [second]);
    assert.deepEqual(await access.put([second]), [second]);
    assert.equal(await revision(world), before);
    assert.deepEqual(await all(world), [second]);
  },

  "what was removed stays removed, whatever comes later": async (world) => {
    const { access } = world.store;
    const first = credential("a");
    const tombstone = removed(first, "node-a", 5_000);
    await access.put([first]);
    assert.deepEqual(await access.put([tombstone]), [tombstone]);
    let later = first;
    for (let n = 0; n < 5; n++) later = changed(later, "node-z", { permission: "admin", secret: `new-${n}` });
    assert.deepEqual(await access.put([later]), [tombstone]);
    assert.deepEqual(await all(world), [tombstone]);
  },

  "of two changes the higher version stays, and of equal ones that of the higher node": async (world) => {
    const { access } = world.store;
    const first = credential("a");
    const here = changed(first, "node-a", { permission: "read" });
    const there = changed(first, "node-b", { permission: "operate" });
    await access.put([first]);
    assert.deepEqual(await access.put([there]), [there]);
    assert.deepEqual(await access.put([here]), [there]);
    const newer = changed(here, "node-a", { permission: "admin" });
    assert.deepEqual(await access.put([newer, there]), [newer, newer]);
  },

  "the last use is the latest that anybody told": async (world) => {
    const { access } = world.store;
    const first = credential("a");
    await access.put([{ ...first, lastUsedAt: 9_000 }]);
    await access.put([changed({ ...first, lastUsedAt: 4_000 }, "node-b", { permission: "read" })]);
    const [kept] = await all(world);
    assert.deepEqual([kept!.lastUsedAt, kept!.permission, kept!.version], [9_000, "read", 2]);
    const before = await revision(world);
    await access.put([{ ...kept!, lastUsedAt: 10_000 }]);
    assert.equal((await all(world, before))[0]!.lastUsedAt, 10_000);
  },

  "a first admin is taken only where there never was one, also of many at the same time": async (world) => {
    const { access } = world.store;
    await access.put([credential("other")]);
    const admin = (id: string): Credential => credential(id, { permission: "admin" });
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => access.put([admin(`first-${n}`)], "first_admin")),
    );
    assert.equal(answers.filter((answer) => answer !== null).length, 1);
    const [only, other, ...more] = await all(world);
    assert.deepEqual([other!.id, more], ["other", []]);
    await access.put([removed(only!, "node-a", 2_000)]);
    assert.equal(await access.put([admin("late")], "first_admin"), null);
    assert.equal((await all(world)).length, 2);
  },

  "a name is given once among the living, also to many at the same time": async (world) => {
    const { access } = world.store;
    const ann = (id: string): Credential => credential(id, { kind: "user", name: "ann" });
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => access.put([ann(`ann-${n}`)], "free_name")),
    );
    assert.equal(answers.filter((answer) => answer !== null).length, 1);
    const [only, ...others] = await all(world);
    assert.deepEqual(others, []);
    // Another kind, another name, and the one that has it.
    assert.ok(await access.put([credential("token", { name: "ann" })], "free_name"));
    assert.ok(await access.put([credential("bob", { kind: "user", name: "bob" })], "free_name"));
    assert.ok(await access.put([changed(only!, "node-a", { permission: "read" })], "free_name"));
    assert.equal(await access.put([credential("x"), ann("again")], "free_name"), null);
    await access.put([removed(changed(only!, "node-a", {}), "node-a", 2_000)]);
    assert.ok(await access.put([ann("again")], "free_name"));
  },

  "two nodes that change the same one at the same time agree in the end": async (world) => {
    const { access } = world.store;
    const first = credential("a");
    await access.put([first]);
    const changes = Array.from({ length: 10 }, (_, n) =>
      changed(first, `node-${n}`, { permission: n % 2 ? "read" : "operate" }),
    );
    await Promise.all(changes.map((each) => access.put([each])));
    assert.deepEqual(await all(world), [changes[9]]);
  },

  "what is forgotten is gone without a trace": async (world) => {
    const { access } = world.store;
    await access.put([credential("a"), credential("b"), removed(credential("c"), "node-a", 3_000)]);
    const before = await revision(world);
    await access.forget(["a", "c", "never there"]);
    await access.forget([]);
    assert.deepEqual(column(await all(world), "id"), ["b"]);
    await access.put([credential("d")]);
    assert.deepEqual(column(await all(world, before), "id"), ["d"]);
  },

  "no credentials at all are fine": async (world) => {
    const { access } = world.store;
    assert.deepEqual(await access.put([]), []);
    assert.deepEqual(await access.put([], "free_name"), []);
    assert.equal(await revision(world), 0);
  },

  "one that is given twice in a batch is merged with itself": async (world) => {
    const first = credential("a");
    const second = changed(first, "node-a", { permission: "admin" });
    assert.deepEqual(await world.store.access.put([second, first]), [second, second]);
    assert.deepEqual(await all(world), [second]);
  },
};

/** Only for keepers that find everything again on the same directory. */
export const accessReopenPromises: Promises = {
  "credentials, tombstones and the revision are found again": async (world) => {
    const kept = [credential("a", { lastUsedAt: 4_000 }), removed(credential("b"), "node-a", 3_000)];
    await world.store.access.put(kept);
    const before = await revision(world);
    await world.reopen();
    assert.deepEqual(await all(world), kept);
    assert.equal(await revision(world), before);
  },
};

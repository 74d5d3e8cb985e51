import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BatonError } from "../../../src/core/errors.ts";
import type { Credential } from "../../../src/core/access/credential.ts";
import { useStep } from "../../../src/core/access/credential.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import type { AccessStore } from "../../../src/store/access.ts";
import { credential, sharing, storeOn } from "./world.ts";
import { column } from "../../support/columns.ts";

const CI = { name: "ci", permission: "submit", expiresInMs: null, by: "test" } as const;
const DAY_MS = 86_400_000;

async function two() {
  const clock = new ManualClock();
  const store = await storeOn(clock);
  return { clock, store, a: await sharing("a", clock, store), b: await sharing("b", clock, store) };
}

describe("credentials in a store that nodes share", () => {
  it("a caller who was just recognised is refused when the token is revoked or expires, or the user of a session has another password", async () => {
    const clock = new ManualClock();
    const node = await sharing("a", clock, await storeOn(clock));
    const { tokens, users } = node.access;
    const make = { name: "ci", permission: "read", by: "test" } as const;
    const revoked = await tokens.create({ ...make, expiresInMs: null });
    const short = await tokens.create({ ...make, expiresInMs: 1_000 });
    for (let n = 0; n < 3; n++) assert.equal(node.who(revoked.text)?.name, "ci");
    await tokens.revoke(revoked.token.id);
    assert.equal(node.who(revoked.text), null);
    for (let n = 0; n < 3; n++) assert.equal(node.who(short.text)?.name, "ci");
    await clock.advance(1_000);
    assert.equal(node.who(short.text), null);
    const ann = { name: "ann", password: "correct horse battery", permission: "admin", by: "test" } as const;
    await users.add(ann);
    const { text } = (await users.login("ann", ann.password))!;
    const shown = { by: "cookie", text } as const;
    for (let n = 0; n < 3; n++) assert.equal(node.access.identify(shown)?.name, "ann");
    await users.setPassword("ann", "another horse battery");
    assert.equal(node.access.identify(shown), null);
  });

  it("a token made at one node counts at the other one before it is refused there", async () => {
    const { a, b, clock } = await two();
    await clock.advance(1_000);
    const { text } = await a.access.tokens.create(CI);
    assert.equal(a.who(text)?.name, "ci");
    assert.equal(b.who(text), null, "not looked yet");
    const asked = b.access.identifyAgain({ by: "bearer", text });
    await clock.advance(250);
    assert.equal((await asked)?.name, "ci");
  });

  it("a revocation counts everywhere within five seconds, without anybody asking", async () => {
    const { a, b, clock } = await two();
    await clock.advance(1_000);
    const { text, token } = await a.access.tokens.create(CI);
    await clock.advance(2_500);
    assert.equal(b.who(text)?.name, "ci");
    await a.access.tokens.revoke(token.id);
    assert.equal(a.who(text), null, "at once where it was made");
    await clock.advance(5_000);
    assert.equal(b.who(text), null);
  });

  it("a token that is held for an agent counts for longer when that is said again, takes the place of the one before, and stays released", async () => {
    const { a, b, clock } = await two();
    await clock.advance(1_000);
    const worker = { name: "ada-worker", permission: "operate", by: "node-controller:ada" } as const;
    const hold = (text: string) => a.access.tokens.adopt(text, { ...worker, expiresInMs: 60_000 });
    await hold("baton_old");
    await hold("baton_new");
    assert.deepEqual([a.who("baton_old"), a.who("baton_new")?.permission], [null, "operate"]);
    await clock.advance(45_000);
    await hold("baton_new");
    await clock.advance(45_000);
    assert.equal(b.who("baton_new")?.permission, "operate");
    await clock.advance(20_000);
    assert.equal(b.who("baton_new"), null, "unless nobody says so");
    await hold("baton_new");
    assert.equal(a.who("baton_new")?.permission, "operate");
    await a.access.tokens.release("baton_new");
    await hold("baton_new");
    assert.equal(a.who("baton_new"), null);
    assert.equal((await a.access.tokens.list()).length, 0);
  });

  it("wrong tokens do not make a node ask its store more than four times in a second", async () => {
    const clock = new ManualClock();
    const inner = await storeOn(clock);
    let looks = 0;
    const store: AccessStore = {
      changes: (after) => (looks++, inner.changes(after)),
      put: (...args) => inner.put(...args),
      forget: (ids) => inner.forget(ids),
    };
    const node = await sharing("a", clock, store);
    const before = looks;
    const asked: Promise<unknown>[] = [];
    for (let ms = 0; ms < 1_000; ms += 10) {
      for (let n = 0; n < 20; n++)
        asked.push(node.access.identifyAgain({ by: "bearer", text: `baton_wrong-${ms}-${n}` }));
      await clock.advance(10);
    }
    await clock.advance(250);
    assert.deepEqual([...new Set(await Promise.all(asked))], [null]);
    assert.ok(looks - before <= 6, `${looks - before} looks`);
  });

  it("a node that cannot read its store says so after half a minute, and is well again afterwards", async () => {
    const clock = new ManualClock();
    const inner = await storeOn(clock);
    let away = false;
    const store: AccessStore = {
      changes: async (after) => {
        if (away) throw new BatonError("STORE_UNAVAILABLE", "gone");
        return inner.changes(after);
      },
      put: (...args) => inner.put(...args),
      forget: (ids) => inner.forget(ids),
    };
    const node = await sharing("a", clock, store);
    assert.equal(node.access.stale, false);
    const { text } = await node.access.tokens.create(CI);
    away = true;
    await clock.advance(20_000);
    assert.equal(node.access.stale, false, "a restart of the database locks nobody out");
    await clock.advance(15_000);
    assert.equal(node.access.stale, true);
    assert.equal(node.who(text)?.name, "ci", "who it is, is still known");
    away = false;
    await clock.advance(3_000);
    assert.equal(node.access.stale, false);
  });

  it("a use is noted once in ten minutes, however many there are", async () => {
    const { a, store, clock } = await two();
    const { text, token } = await a.access.tokens.create(CI);
    let writes = 0;
    const put = store.put.bind(store);
    store.put = (...args) => {
      writes++;
      return put(...args);
    };
    for (let n = 0; n < 100; n++) {
      for (let m = 0; m < 50; m++) assert.ok(a.who(text));
      await clock.advance(1_000);
    }
    const [kept] = (await store.changes(0)).credentials;
    assert.equal(kept!.id, token.id);
    assert.ok(useStep(clock.now()) - kept!.lastUsedAt! <= 600_000);
    assert.ok(writes <= 2, `${writes} writes`);
  });

  it("what has expired long ago is forgotten, in the store and here; a tombstone without an end is not", async () => {
    const clock = new ManualClock();
    const store = await storeOn(clock);
    const old = (id: string, days: number): Credential => {
      const createdAt = clock.now() - 400 * DAY_MS;
      const expiresAt = clock.now() - days * DAY_MS;
      return credential({ id, name: id, createdAt, expiresAt });
    };
    const revoked = credential({ id: "revoked", name: "revoked", createdAt: 0, removedAt: 1, secret: null });
    await store.put([old("long-ago", 31), old("lately", 29), revoked]);
    const a = await sharing("a", clock, store);
    await clock.advance(5_000);
    const left = (await store.changes(0)).credentials;
    assert.deepEqual(left.map(({ name }) => name).sort(), ["lately", "revoked"]);
    assert.deepEqual(column(await a.access.tokens.list(), "name"), ["lately"]);
    // Nor is it taken back from a node that still has it.
    await a.credentials.merge([old("long-ago", 31)]);
    assert.equal((await store.changes(0)).credentials.length, 2);
  });
});

describe("users", () => {
  it("of two nodes that add the same one at the same time one is told that the name is taken", async () => {
    const { a, b } = await two();
    const ann = { name: "ann", password: "correct horse battery", permission: "read", by: "test" } as const;
    const added = await Promise.allSettled([a.access.users.add(ann), b.access.users.add(ann)]);
    assert.deepEqual(added.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
    assert.equal((await a.access.users.list()).length, 1);
  });

  it("who is gone may be added again, and the old sessions stay ended", async () => {
    const { a } = await two();
    const ann = { name: "ann", password: "correct horse battery", permission: "admin", by: "test" } as const;
    await a.access.users.add(ann);
    const before = await a.access.users.login("ann", ann.password);
    const session = { by: "cookie", text: before!.text } as const;
    assert.equal(a.access.identify(session)?.permission, "admin");
    await a.access.users.remove("ann");
    assert.equal(a.access.identify(session), null);
    assert.equal(await a.access.users.login("ann", ann.password), null);
    await a.access.users.add({ ...ann, permission: "read" });
    assert.equal(a.access.identify(session), null);
    const after = await a.access.users.login("ann", ann.password);
    assert.equal(a.access.identify({ by: "cookie", text: after!.text })?.permission, "read");
  });
});

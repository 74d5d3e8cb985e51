import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { getHeapSnapshot } from "node:v8";
import { PrincipalCache } from "../../../src/access/principal-cache.ts";
import { newToken } from "../../../src/access/token-service.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { connection, credential, sharing, storeOn } from "./world.ts";

const principal = { kind: "token", name: "ci", permission: "read", id: "1" } as const;

describe("who was recognised on a connection", () => {
  it("is known again by the same text alone, on the same connection alone, until the book has changed", () => {
    const recognised = new PrincipalCache();
    const [one, two] = [{}, {}];
    const text = newToken();
    const known = { principal, credential: credential({}) };
    recognised.keep(one, "bearer", text, 1, known);
    assert.equal(recognised.find(one, "bearer", text, 1), known);
    assert.equal(recognised.find(two, "bearer", text, 1), null);
    assert.equal(recognised.find(one, "cookie", text, 1), null, "a session is no token");
    assert.equal(recognised.find(one, "bearer", text, 2), null);
    for (let at = 0; at < text.length; at++) {
      const letter = String.fromCharCode(text.charCodeAt(at) ^ 1);
      const wrong = text.slice(0, at) + letter + text.slice(at + 1);
      assert.equal(recognised.find(one, "bearer", wrong, 1), null, `letter ${at}`);
      // The same in its lower eight bits.
      const wide = String.fromCharCode(text.charCodeAt(at) + 256);
      assert.equal(recognised.find(one, "bearer", text.slice(0, at) + wide + text.slice(at + 1), 1), null);
    }
    for (const wrong of ["", text.slice(1), text.slice(0, -1), `${text}x`, "x".repeat(4_000)])
      assert.equal(recognised.find(one, "bearer", wrong, 1), null);
    const next = newToken();
    recognised.keep(one, "bearer", next, 1, known);
    assert.equal(recognised.find(one, "bearer", text, 1), null, "one for each connection");
    assert.equal(recognised.find(one, "bearer", next, 1), known);
  });

  it("is not among the texts in memory", async () => {
    const recognised = new PrincipalCache();
    const [shown, control] = [randomBytes(30), randomBytes(30)];
    const kept: unknown[] = [];
    // In a call of its own, so that nothing on the stack has the text any more.
    const show = (): void => {
      recognised.keep(connection, "bearer", shown.toString("hex"), 1, { principal, credential: null });
      kept.push(control.toString("hex"));
    };
    show();
    await setImmediate();
    let snapshot = "";
    for await (const part of getHeapSnapshot()) snapshot += String(part);
    assert.ok(snapshot.includes(control.toString("hex")), "a text that is kept would be found");
    assert.ok(!snapshot.includes(shown.toString("hex")));
    assert.ok(recognised.find(connection, "bearer", shown.toString("hex"), 1));
    assert.equal(kept.length, 1);
  });

  it("counts no longer than the token: it is revoked, it expires, its session's user has another password", async () => {
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
    const shown = { by: "cookie", text, connection } as const;
    for (let n = 0; n < 3; n++) assert.equal(node.access.identify(shown)?.name, "ann");
    await users.setPassword("ann", "another horse battery");
    assert.equal(node.access.identify(shown), null);
  });
});

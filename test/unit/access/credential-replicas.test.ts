import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../support/fast-check.ts";
import { PeerAccess } from "./world.ts";
import type { AccessNode } from "./world.ts";

const CI = { name: "ci", permission: "submit", expiresInMs: null, by: "test" } as const;

function contentOf(node: AccessNode): string {
  return JSON.stringify([...node.credentials.cache.all()].sort((a, b) => (a.id < b.id ? -1 : 1)));
}

describe("credentials of nodes that have a store each", () => {
  it("a change is known at all nodes that can be reached when it is acknowledged", async () => {
    const world = await PeerAccess.of("a", "b", "c");
    const [a, b, c] = world.nodes as [AccessNode, AccessNode, AccessNode];
    const { text, token } = await a.access.tokens.create(CI);
    for (const node of [a, b, c]) assert.equal(node.who(text)?.name, "ci", node.name);
    await c.access.tokens.revoke(token.id);
    for (const node of [a, b, c]) assert.equal(node.who(text), null, node.name);
  });

  it("a node that was cut off hears of it within five seconds after it is back", async () => {
    const world = await PeerAccess.of("a", "b", "c");
    await world.startAll();
    const [a, b, c] = world.nodes as [AccessNode, AccessNode, AccessNode];
    const { text, token } = await a.access.tokens.create(CI);
    world.cut("a", "c");
    world.cut("b", "c");
    await a.access.tokens.revoke(token.id);
    const fresh = await b.access.tokens.create({ ...CI, name: "fresh" });
    await world.clock.advance(10_000);
    assert.ok(c.who(text), "it cannot know");
    assert.equal(c.who(fresh.text), null);
    world.heal();
    await world.clock.advance(5_000);
    assert.equal(c.who(text), null);
    assert.equal(c.who(fresh.text)?.name, "fresh");
    await world.stopAll();
  });

  it("a node that joins has all of them, and says when it has heard a node", async () => {
    const world = await PeerAccess.of("a", "b");
    const [a] = world.nodes as [AccessNode];
    const texts: string[] = [];
    for (let n = 0; n < 600; n++) texts.push((await a.access.tokens.create({ ...CI, name: `t${n}` })).text);
    const late = await world.add("late");
    assert.equal(late.replicas!.hasHeard("a"), false);
    await world.startAll();
    await world.clock.advance(2_000);
    assert.equal(late.replicas!.hasHeard("a"), true);
    assert.ok(texts.every((text) => late.who(text)));
    assert.equal(contentOf(late), contentOf(a));
    const { calls } = world;
    await world.clock.advance(30_000);
    assert.ok(world.calls - calls <= 75, `${world.calls - calls} calls while nothing happens`);
    await world.stopAll();
  });

  it("what a node was told survives its restart", async () => {
    const world = await PeerAccess.of("a", "b");
    const [a] = world.nodes as [AccessNode];
    const { text, token } = await a.access.tokens.create(CI);
    await a.access.tokens.revoke(token.id);
    world.nodes.pop();
    const again = await world.add("b");
    assert.equal(again.who(text), null);
    assert.equal(again.credentials.cache.get(token.id)?.removedAt !== null, true);
  });

  it("two users of one name, made on both sides of a split, are one person afterwards: the older one", async () => {
    const world = await PeerAccess.of("a", "b");
    await world.startAll();
    const [a, b] = world.nodes as [AccessNode, AccessNode];
    world.cut("a", "b");
    const ann = { name: "ann", permission: "read", by: "test" } as const;
    await a.access.users.add({ ...ann, password: "of the one side" });
    await world.clock.advance(1_000);
    await b.access.users.add({ ...ann, password: "of the other side", permission: "admin" });
    world.heal();
    await world.clock.advance(5_000);
    for (const node of [a, b]) {
      assert.ok(await node.access.users.login("ann", "of the one side"), node.name);
      assert.equal(await node.access.users.login("ann", "of the other side"), null, node.name);
      assert.equal((await node.access.users.list()).length, 1);
    }
    await b.access.users.remove("ann");
    for (const node of [a, b]) assert.deepEqual(await node.access.users.list(), [], "both of them are gone");
    await world.stopAll();
  });

  it("whatever happens in whatever order, all agree in the end and nothing revoked is back", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            at: fc.nat(2),
            what: fc.constantFrom("create", "revoke", "cut", "heal", "wait"),
            which: fc.nat(20),
          }),
          { maxLength: 25 },
        ),
        async (steps) => {
          const world = await PeerAccess.of("a", "b", "c");
          await world.startAll();
          const texts = new Map<string, string>();
          const revoked = new Set<string>();
          for (const { at, what, which } of steps) {
            const node = world.nodes[at]!;
            const id = [...texts.keys()][which % Math.max(1, texts.size)];
            if (what === "create") {
              const { text, token } = await node.access.tokens.create(CI);
              texts.set(token.id, text);
            } else if (what === "revoke" && id !== undefined) {
              if (await node.access.tokens.revoke(id)) revoked.add(id);
            } else if (what === "cut") world.cut(node.name, world.nodes[which % 3]!.name);
            else if (what === "heal") world.heal();
            else await world.clock.advance(which * 200);
          }
          world.heal();
          await world.clock.advance(8_000);
          const [first, ...others] = world.nodes.map(contentOf);
          for (const other of others) assert.equal(other, first);
          for (const [id, text] of texts)
            for (const node of world.nodes) assert.equal(node.who(text) === null, revoked.has(id));
          await world.stopAll();
        },
      ),
      { numRuns: 15 },
    ));

  it("what is no credential is not taken from anybody", async () => {
    const world = await PeerAccess.of("a", "b");
    const [a] = world.nodes as [AccessNode];
    const whole = { credentials: [...a.credentials.cache.all()], next: null };
    const { token } = await a.access.tokens.create(CI);
    const good = { ...token, secret: "x".repeat(43) };
    const bad: unknown[] = [
      null,
      [],
      { credentials: {} },
      { ...whole, credentials: [{ ...good, permission: "root" }] },
      { ...whole, credentials: [{ ...good, kind: "god" }] },
      { ...whole, credentials: [{ ...good, version: 0 }] },
      { ...whole, credentials: [{ ...good, version: Number.MAX_VALUE }] },
      { ...whole, credentials: [{ ...good, name: "a\nb" }] },
      { ...whole, credentials: [{ ...good, id: "../x" }] },
      { ...whole, credentials: [{ ...good, secret: "x".repeat(5_000) }] },
      { ...whole, credentials: Array.from({ length: 501 }, () => good) },
    ];
    const sent = async (body: string): Promise<string> => {
      const received = { from: "b", method: "POST" as const, path: "/peer/access", headers: {}, body };
      const reply = await a.replicas!.handle(received);
      return `${reply.status} ${(JSON.parse(reply.body!) as { error?: string }).error}`;
    };
    for (const body of bad)
      assert.equal(await sent(JSON.stringify(body)), "400 BAD_REQUEST", JSON.stringify(body)?.slice(0, 80));
    assert.equal(await sent("{"), "400 BAD_JSON");
    assert.equal(await sent(JSON.stringify({ ...whole, credentials: [good] })), "200 undefined");
  });
});

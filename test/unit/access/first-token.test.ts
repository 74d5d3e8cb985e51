import assert from "node:assert/strict";
import { chmodSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { TestContext } from "node:test";
import { firstToken } from "../../../src/access/first-token.ts";
import type { FirstTokenPeers } from "../../../src/access/first-token.ts";
import { agreedToken } from "../../../src/access/token-service.ts";
import type { Log } from "../../../src/platform/log.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { temporaryDirectory } from "../../support/node-here.ts";
import { PeerAccess, platformOf, sharing, storeOn } from "./world.ts";
import type { AccessNode } from "./world.ts";

const SECRET = "the-cluster-secret-of-this-test-0123456789";

function keptLog() {
  const lines: string[] = [];
  const keep = (fields: Readonly<Record<string, unknown>>, message: string): void =>
    void lines.push(JSON.stringify([fields, String(fields["err"]), message]));
  return { lines, log: { debug: keep, info: keep, warn: keep, error: keep } satisfies Log };
}

function first(
  node: AccessNode,
  clock: ManualClock,
  { file = null, peers = null }: { file?: string | null; peers?: FirstTokenPeers | null } = {},
) {
  const { lines, log } = keptLog();
  const token = firstToken(platformOf(node.name, clock, log), node.credentials, file, peers);
  return { token, lines };
}

async function alone(t: TestContext) {
  const clock = new ManualClock();
  const node = await sharing("a", clock, await storeOn(clock));
  return { clock, node, file: join(await temporaryDirectory(t), "admin-token") };
}

describe("the first admin token", () => {
  it("is made where nobody is an admin, kept in a file for its owner alone, and never logged", async (t) => {
    const { clock, node, file } = await alone(t);
    const { token, lines } = first(node, clock, { file });
    await token.start();
    const text = readFileSync(file, "utf8").trim();
    assert.match(text, /^baton_[A-Za-z0-9_-]{43}$/);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.equal(node.who(text)?.permission, "admin");
    assert.deepEqual(token.made, { text, file });
    assert.ok(lines.some((line) => line.includes(file)));
    assert.ok(!lines.join().includes(text));
    await token.stop();
  });

  it("is not made again: not by the next start, and not after it was revoked", async (t) => {
    const { clock, node, file } = await alone(t);
    await first(node, clock, { file }).token.start();
    const again = first(node, clock, { file }).token;
    await again.start();
    assert.equal(again.made, null);
    const [made] = await node.access.tokens.list();
    await node.access.tokens.revoke(made!.id);
    const later = first(node, clock, { file }).token;
    await later.start();
    assert.equal(later.made, null);
    assert.deepEqual(await node.access.tokens.list(), []);
  });

  it("is made also where there are tokens, but none with admin", async (t) => {
    const { clock, node, file } = await alone(t);
    await node.access.tokens.create({ name: "x", permission: "operate", expiresInMs: null, by: "test" });
    const { token } = first(node, clock, { file });
    await token.start();
    assert.ok(token.made);
  });

  it("of nodes that start together on one store is made by one", async () => {
    const clock = new ManualClock();
    const store = await storeOn(clock);
    const nodes = await Promise.all(["a", "b", "c", "d"].map((name) => sharing(name, clock, store)));
    const tokens = nodes.map((node) => first(node, clock).token);
    await Promise.all(tokens.map((token) => token.start()));
    const made = tokens.flatMap((token) => token.made ?? []);
    assert.equal(made.length, 1);
    await clock.advance(2_500);
    for (const node of nodes) assert.equal(node.who(made[0]!.text)?.permission, "admin", node.name);
    assert.equal((await nodes[0]!.access.tokens.list()).length, 1);
  });

  it("is the one of the file when a start ended between the two", async (t) => {
    const { clock, node, file } = await alone(t);
    const left = `baton_${"x1Y2z3".repeat(7)}q`;
    writeFileSync(file, `${left}\n`, { mode: 0o600 });
    const { token } = first(node, clock, { file });
    await token.start();
    assert.equal(node.who(left)?.permission, "admin");
  });

  it("is not made of a file that others could have written", async (t) => {
    const { clock, node, file } = await alone(t);
    writeFileSync(`${file}-elsewhere`, "baton_somebody-elses-token\n", { mode: 0o600 });
    symlinkSync(`${file}-elsewhere`, file);
    const { token, lines } = first(node, clock, { file });
    await token.start();
    assert.equal(token.made, null);
    assert.match(lines.join(), /is a link; remove it/);
    await token.stop();
    const open = `${file}-open`;
    writeFileSync(open, "baton_somebody-elses-token\n");
    chmodSync(open, 0o644);
    const second = first(node, clock, { file: open });
    await second.token.start();
    assert.match(second.lines.join(), /is open to other users; remove it/);
    assert.deepEqual(await node.access.tokens.list(), []);
    await second.token.stop();
  });
});

describe("the first admin token of peers", () => {
  const agreed = agreedToken(SECRET);

  async function peers(t: TestContext, ...names: string[]) {
    const world = await PeerAccess.of(...names);
    const dir = await temporaryDirectory(t);
    let leader: string | null = null;
    const begin = (node: AccessNode, with_: string | null = agreed) =>
      first(node, world.clock, {
        file: join(dir, node.name),
        peers: {
          agreed: with_,
          leads: () => leader === node.name,
          settled: () => leader !== null && node.replicas!.hasHeard(leader),
        },
      });
    return { world, dir, begin, lead: (name: string) => (leader = name) };
  }

  it("is the same on all of them, once there is a leader and each has heard of it", async (t) => {
    const { world, dir, begin, lead } = await peers(t, "a", "b", "c");
    const tokens = world.nodes.map((node) => begin(node).token);
    await world.startAll();
    await Promise.all(tokens.map((token) => token.start()));
    await world.clock.advance(5_000);
    assert.ok(
      tokens.every((token) => token.made === null),
      "without a leader nobody knows",
    );
    lead("b");
    await world.clock.advance(5_000);
    for (const node of world.nodes) {
      assert.equal(node.who(agreed)?.permission, "admin", node.name);
      assert.equal((await node.access.tokens.list()).length, 1);
      assert.equal(readFileSync(join(dir, node.name), "utf8").trim(), agreed);
    }
    for (const token of tokens) await token.stop();
    await world.stopAll();
  });

  it("is not back when a new node joins after it was revoked", async (t) => {
    const { world, begin, lead } = await peers(t, "a", "b");
    await world.startAll();
    lead("a");
    const tokens = world.nodes.map((node) => begin(node).token);
    await Promise.all(tokens.map((token) => token.start()));
    await world.clock.advance(5_000);
    const [made] = await world.nodes[0]!.access.tokens.list();
    await world.nodes[0]!.access.tokens.revoke(made!.id);
    const late = await world.add("late");
    const { token } = begin(late);
    await token.start();
    assert.equal(late.who(agreed), null, "nothing is made before it has heard of the leader");
    await late.replicas!.start();
    await world.clock.advance(5_000);
    for (const node of world.nodes) assert.equal(node.who(agreed), null, node.name);
    assert.equal(token.made, null);
    for (const each of [...tokens, token]) await each.stop();
    await world.stopAll();
  });

  it("is made by the leader alone where there is no secret", async (t) => {
    const { world, begin, lead } = await peers(t, "a", "b", "c");
    await world.startAll();
    lead("c");
    const tokens = world.nodes.map((node) => begin(node, null).token);
    await Promise.all(tokens.map((token) => token.start()));
    await world.clock.advance(5_000);
    const made = tokens.map((token) => token.made?.text ?? null);
    assert.deepEqual(made.slice(0, 2), [null, null]);
    for (const node of world.nodes) assert.equal(node.who(made[2]!)?.permission, "admin", node.name);
    for (const token of tokens) await token.stop();
    await world.stopAll();
  });

  it("tells nothing of the secret, and is another one for another secret", () => {
    assert.match(agreed, /^baton_[A-Za-z0-9_-]{43}$/);
    assert.notEqual(agreed, agreedToken(`${SECRET}x`));
    assert.equal(agreed, agreedToken(SECRET));
  });
});

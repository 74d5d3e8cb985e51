/** The file of votes on a real disk, the voter behind it, and what a peer answers to messages that make no sense. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { VOTE_FILE, type Voter } from "../../../../../src/peers/bully/election/voter.ts";
import { PeerState } from "../../../../../src/peers/bully/peer-state.ts";
import { systemFiles, type Files } from "../../../../../src/platform/files.ts";
import { systemClock } from "../../../../../src/platform/clock.ts";
import { DEFAULT_SETTINGS } from "../../../../support/lock-peers.ts";
import { fakePlatform } from "../../../../support/fake-platform.ts";
import { candidate, OWN_INFO } from "../../../../support/lock-candidates.ts";
import { MemoryTerms } from "../../../../support/lock-terms.ts";
import { Disk, PeerWorld, QUICK, urlOf } from "../../../../support/lock-peers.ts";
import { ROLE } from "../../../../support/lock-world.ts";
import { eventually } from "../../../../support/wait.ts";

const ada = candidate("ada");
const bob = candidate("bob");

async function inDirectory(body: (dir: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "baton-votes-"));
  try {
    await body(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function voterOn(dir: string, files: Files = systemFiles): Promise<Voter> {
  return (await stateOn(dir, files)).voter;
}

async function stateOn(dir: string, files: Files): Promise<PeerState> {
  const state = new PeerState(fakePlatform({ name: "self", clock: systemClock, files }), {
    info: () => OWN_INFO,
    dir,
    terms: new MemoryTerms(),
    source: { kind: "join", addresses: [] },
    settings: { ...DEFAULT_SETTINGS, leaseMs: 1_000 },
  });
  await state.voter.load();
  return state;
}

describe("the file of votes", () => {
  test("a promise survives a restart: the same epoch is not given to another", () =>
    inDirectory(async (dir) => {
      const voter = await voterOn(dir);
      await voter.enter();
      const asked = { candidate: ada, epoch: 5, ttlMs: 1 };
      assert.equal(await voter.promise(asked, null), "granted");
      const later = await voterOn(dir);
      assert.ok(later.votes);
      await eventually("the lease is over", () => later.holder() === null);
      assert.equal(await later.promise({ ...asked, candidate: bob }, null), "denied");
      assert.equal(await later.promise({ ...asked, candidate: bob, epoch: 6 }, null), "granted");
    }));

  test("one that cannot be read makes a voter that has forgotten, not one that begins anew", () =>
    inDirectory(async (dir) => {
      for (const text of ["", "{", "{}", '{"format":2}', '{"format":1,"votes":true,"ballot":{"epoch":-1}}']) {
        writeFileSync(join(dir, VOTE_FILE), text);
        const voter = await voterOn(dir);
        assert.equal(voter.votes, false, text);
        assert.equal(await voter.promise({ candidate: ada, epoch: 1, ttlMs: 1 }, null), "abstains");
      }
    }));
});

test("a promise to a node that restarted is not ended by what its former incarnation answered", async () => {
  const { voter, presences } = await stateOn("", new Disk());
  await voter.enter();
  const before = candidate("ada", "ada/1");
  const now = candidate("ada", "ada/2");
  presences.answered(before);
  presences.refuses(now);
  const asked = { epoch: 1, ttlMs: 60_000 };
  assert.equal(await voter.promise({ ...asked, candidate: now }, null), "granted");
  assert.deepEqual(voter.holder(), { ...now, epoch: 1 });
  assert.equal(await voter.promise({ ...asked, candidate: bob, epoch: 2 }, null), "denied");
  presences.answered(candidate("ada", "ada/3"));
  assert.equal(voter.holder(), null, "a later incarnation proves that it is over");
  assert.equal(await voter.promise({ ...asked, candidate: bob, epoch: 2 }, null), "granted");
});

describe("a voter whose disk fails", () => {
  test("answers with an error, and has promised nothing to anybody else", async () => {
    const disk = new Disk();
    const voter = await voterOn("", disk);
    await voter.enter();
    disk.broken = true;
    const asked = { candidate: ada, epoch: 1, ttlMs: 60_000 };
    await assert.rejects(voter.promise(asked, null), /no space left/);
    disk.broken = false;
    assert.equal(await voter.promise({ ...asked, candidate: bob }, null), "denied");
    // Asked again, and written this time: only now may it be counted on.
    assert.equal(await voter.promise(asked, null), "granted");
    assert.match(disk.text!, /"ada"/);
  });

  test("does not keep the others from electing", async () => {
    await using world = new PeerWorld(systemClock, ["node-a", "node-b", "node-c"], QUICK);
    for (const name of ["node-a", "node-b", "node-c"]) await world.start(name);
    const voting = (name: string) => world.coordination(name).notes().length === 0;
    await eventually("everybody votes", () => ["node-a", "node-b", "node-c"].every(voting));
    world.disk("node-c").broken = true;
    const { coordination, identity } = world.peers.get("node-a")!;
    let term = null;
    await eventually(
      "a term",
      async () => (term = await coordination.lock(ROLE).acquire(identity, 1_000)) !== null,
    );
    assert.ok(term);
  });
});

describe("a peer", () => {
  const life = { name: "node-b", incarnation: "node-b/9" };

  test("answers messages of bad shape with a 400 that names the field, and goes on", async () => {
    await using world = new PeerWorld(systemClock, ["node-a", "node-b"], QUICK);
    const { coordination } = await world.start("node-a");
    const send = (path: string, body: unknown, method: "GET" | "POST" = "POST") =>
      coordination.handle({
        from: urlOf("node-b"),
        method,
        path,
        headers: {},
        body: typeof body === "string" ? body : JSON.stringify(body),
      });
    const from = { from: life, set: null };
    const term = { ...life, epoch: 1 };
    const bad: [string, unknown, string][] = [
      ["/peer/vote", "{", "BAD_JSON"],
      ["/peer/vote", "null", "body"],
      ["/peer/vote", {}, "body.op"],
      ["/peer/vote", { ...from, op: "steal" }, "body.op"],
      ["/peer/vote", { ...from, op: "promise", candidate: life, epoch: "1", ttlMs: 1 }, "body.epoch"],
      ["/peer/vote", { ...from, op: "promise", candidate: life, epoch: 2 ** 60, ttlMs: 1 }, "body.epoch"],
      ["/peer/vote", { ...from, op: "promise", candidate: life, epoch: 1, ttlMs: -1 }, "body.ttlMs"],
      ["/peer/vote", { ...from, op: "renew", term: { ...term, name: "../x" }, ttlMs: 1 }, "body.term.name"],
      ["/peer/election", { ...from }, "body.candidate"],
      ["/peer/coordinator", { ...from, ttlMs: 1 }, "body.term"],
      ["/peer/heartbeat", { ...from }, "body.node"],
      ["/peer/request", { from: life, request: "explode" }, "body.request"],
      ["/peer/remove", { from: life, peers: { epoch: 1 } }, "body.peers"],
      ["/peer/join", { from: life, address: "ftp://x" }, "body.address"],
    ];
    for (const [path, body, names] of bad) {
      const reply = await send(path, body);
      assert.equal(reply.status, 400, `${path} ${JSON.stringify(body)}: ${reply.body}`);
      assert.ok(reply.body?.includes(names), `${path} answered ${reply.body}`);
    }
    assert.equal((await send("/peer/vote", `"${"x".repeat(300_000)}"`)).status, 413);
    assert.equal((await send("/peer/nothing", {})).status, 404);
    assert.equal((await send("/peer/vote", {}, "GET")).status, 405);
    assert.equal((await send("/peer/heartbeat", "", "GET")).status, 405);
  });

  test("ignores whoever is no member, and whoever speaks in another's name", async () => {
    await using world = new PeerWorld(systemClock, ["node-a", "node-b", "node-c"], QUICK);
    const { coordination } = await world.start("node-a");
    const asked = (from: object) =>
      JSON.stringify({
        from,
        set: null,
        op: "release",
        term: { name: "node-c", incarnation: "c/1", epoch: 1 },
      });
    const send = (sender: string, from: object) =>
      coordination.handle({
        from: sender,
        method: "POST",
        path: "/peer/vote",
        headers: {},
        body: asked(from),
      });
    assert.equal((await send("evil", { name: "evil", incarnation: "1" })).status, 403);
    assert.equal(
      (await send("node-c", life)).status,
      403,
      "node-c, by its signature, says that it is node-b",
    );
    assert.equal((await send("node-b", life)).status, 200);
    const own = await send("elsewhere", { name: "node-a", incarnation: "another" });
    assert.equal(own.status, 409);
    assert.match(own.body!, /NAME_IN_USE/);
  });
});

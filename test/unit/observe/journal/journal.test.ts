import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { journalOf } from "../../../../src/observe/journal/journal.ts";
import { refusedWrites } from "../../../../src/observe/journal/refused-writes.ts";
import { termJournal } from "../../../../src/observe/journal/term-journal.ts";
import { BatonError } from "../../../../src/core/errors.ts";
import type { JobId, NodeName } from "../../../../src/core/ids.ts";
import type { Refusal } from "../../../../src/core/leadership/refused-write.ts";
import type { Term } from "../../../../src/core/leadership/term.ts";
import { silentLog, type Log } from "../../../../src/platform/log.ts";
import type { NodeInfo } from "../../../../src/core/node.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { memoryStore } from "../../../support/memory-store.ts";
import { columns } from "../../../support/columns.ts";

async function open() {
  const clock = new ManualClock();
  const store = memoryStore({ clock });
  let away = false;
  const warnings: string[] = [];
  const log: Log = { ...silentLog, warn: (_, message) => void warnings.push(message) };
  const platform = fakePlatform({ clock, log });
  const journal = journalOf(platform, {
    append: async (entries) => {
      if (away) throw new BatonError("STORE_UNAVAILABLE", "away");
      await store.journal.append(entries);
    },
    list: (query) => store.journal.list(query),
  });
  await journal.start();
  return { clock, journal, warnings, setAway: (is: boolean) => void (away = is) };
}

describe("the journal", () => {
  it("writes in the background what is told, in order, with the instant at which it was told", async () => {
    const { clock, journal } = await open();
    const told = clock.now();
    journal.note({ kind: "node.joined", subject: "node-a" });
    journal.note({ kind: "audit", actor: "anna", subject: "x", detail: { operation: "pause_queue" } });
    assert.deepEqual(await journal.list({ limit: 10 }), []);
    await clock.advance(1_000);
    const entries = await journal.list({ limit: 10 });
    assert.deepEqual(columns(entries, "kind", "node", "at"), [
      ["audit", "node-a", told],
      ["node.joined", "node-a", told],
    ]);
    assert.equal(entries[0]!.actor, "anna");
  });

  it("keeps entries while the store is away, and says so once", async () => {
    const { clock, journal, warnings, setAway } = await open();
    setAway(true);
    const told = clock.now();
    journal.note({ kind: "term.ended", subject: "scheduler" });
    await clock.advance(5_000);
    assert.deepEqual(warnings, ["the journal cannot be written"]);
    setAway(false);
    await clock.advance(2_000);
    const [entry] = await journal.list({ limit: 1 });
    assert.equal(entry!.at, told);
  });

  it("lets the oldest go when too many wait, and tells how many", async () => {
    const { clock, journal, warnings, setAway } = await open();
    setAway(true);
    for (let n = 0; n < 2_010; n++) journal.note({ kind: "audit", subject: String(n) });
    await clock.advance(100);
    setAway(false);
    await clock.advance(5_000);
    const entries = await journal.list({ limit: 5_000 });
    assert.equal(entries.length, 2_000);
    assert.equal(entries.at(-1)!.subject, "10");
    assert.ok(warnings.includes("entries of the journal were let go"));
  });

  it("writes what is left when it stops, and holds up no stop for a store that is away", async () => {
    const { journal, setAway } = await open();
    journal.note({ kind: "node.left" });
    await journal.stop();
    assert.equal((await journal.list({ limit: 1 })).length, 1);
    await journal.start();
    setAway(true);
    journal.note({ kind: "node.left" });
    await journal.stop();
  });

  it("cuts what is too large to be kept", async () => {
    const { clock, journal } = await open();
    journal.note({ kind: "audit", detail: { params: "x".repeat(20_000) } });
    await clock.advance(100);
    const [entry] = await journal.list({ limit: 1 });
    assert.match(String(entry!.detail["left_out"]), /^\d+ characters$/);
  });
});

describe("refused writes", () => {
  const refusal: Refusal = { write: "run.result", carried: 1, current: null, job: "node-a-1" as JobId };

  it("of a storm are a few a second, and every one is counted", async () => {
    const { clock, journal } = await open();
    const refused = refusedWrites({ clock }, journal, async () => 2);
    await refused.start();
    for (let second = 0; second < 5; second++) {
      for (let n = 0; n < 1_000; n++) refused.add(refusal);
      await clock.advance(1_000);
    }
    await refused.stop();
    await clock.advance(1_000);
    const entries = await journal.list({ limit: 10_000 });
    assert.equal(
      entries.reduce((sum, { detail }) => sum + (detail["count"] as number), 0),
      5_000,
    );
    assert.ok(entries.length <= 5 * 4, `${entries.length} entries`);
  });
});

describe("terms", () => {
  const term = (epoch: number, leader = "node-a", incarnation = `${leader}-1`): Term => {
    return { role: "scheduler", leader: leader as NodeName, incarnation, epoch };
  };

  async function world(nodes: readonly [name: string, status: string][] = []) {
    const { clock, journal } = await open();
    const known = nodes.map(
      ([name, status]) => ({ name, incarnation: `${name}-1`, status, lastSeenAt: clock.now() }) as NodeInfo,
    );
    const noteTerm = termJournal({ clock, log: silentLog }, journal, { nodes: () => known });
    const told = async (): Promise<unknown[]> => {
      await clock.advance(3_000);
      const entries = await journal.list({ limit: 100 });
      return entries
        .toReversed()
        .map(({ kind, detail }) => [kind, detail["epoch"], detail["reason"] ?? null]);
    };
    return { clock, journal, noteTerm, told, known };
  }

  it("are told with their reasons", async () => {
    const { noteTerm, told } = await world();
    noteTerm({ is: "started", term: term(1), before: null });
    noteTerm({ is: "ended", term: term(1), reason: "resigned" });
    assert.deepEqual(await told(), [
      ["term.started", 1, null],
      ["term.ended", 1, "resigned"],
    ]);
  });

  it("of a leader that died are ended by the next one, at the instant at which it began", async () => {
    const { noteTerm, journal, told, clock } = await world([["node-a", "dead"]]);
    noteTerm({ is: "started", term: term(1), before: null });
    await clock.advance(60_000);
    const began = clock.now();
    noteTerm({ is: "started", term: term(2, "node-b"), before: null });
    assert.deepEqual(await told(), [
      ["term.started", 1, null],
      ["term.started", 2, null],
      ["term.ended", 1, "node-a died"],
    ]);
    assert.equal((await journal.list({ limit: 1 }))[0]!.at, began);
  });

  it("of a leader that is there and was too slow are told apart from a death", async () => {
    const { noteTerm, told, known } = await world([["node-a", "active"]]);
    noteTerm({ is: "started", term: term(2, "node-b"), before: term(1) });
    assert.deepEqual(await told(), [["term.started", 2, null]]);
    known[0] = { ...known[0]!, lastSeenAt: known[0]!.lastSeenAt + 1 };
    assert.deepEqual(await told(), [
      ["term.started", 2, null],
      ["term.ended", 1, "node-a did not renew its lease in time"],
    ]);
  });

  it("of a leader whose death is known late are not called slow before that", async () => {
    const { noteTerm, told, known } = await world([["node-a", "active"]]);
    noteTerm({ is: "started", term: term(2, "node-b"), before: term(1) });
    assert.deepEqual(await told(), [["term.started", 2, null]]);
    known[0] = { ...known[0]!, status: "dead" };
    assert.deepEqual(await told(), [
      ["term.started", 2, null],
      ["term.ended", 1, "node-a died"],
    ]);
  });

  it("are also ended when the next leader is gone before it did so", async () => {
    const { noteTerm, told } = await world([
      ["node-a", "dead"],
      ["node-b", "dead"],
    ]);
    noteTerm({ is: "started", term: term(1), before: null });
    noteTerm({ is: "started", term: term(2, "node-b"), before: term(1) });
    noteTerm({ is: "started", term: term(3, "node-c"), before: term(2, "node-b") });
    const ends = (await told()).filter((entry) => (entry as unknown[])[0] === "term.ended");
    assert.deepEqual(ends, [
      ["term.ended", 2, "node-b died"],
      ["term.ended", 1, "node-a died"],
    ]);
  });

  it("that their own leader ended are not ended once more", async () => {
    const { noteTerm, told } = await world([["node-a", "dead"]]);
    noteTerm({ is: "started", term: term(1), before: null });
    noteTerm({ is: "started", term: term(2, "node-b"), before: term(1) });
    noteTerm({ is: "ended", term: term(1), reason: "stopped" });
    noteTerm({ is: "started", term: term(2, "node-b"), before: term(1) });
    const kinds = (await told()).filter((entry) => (entry as unknown[])[0] === "term.ended");
    assert.deepEqual(kinds, [["term.ended", 1, "stopped"]]);
  });
});

import assert from "node:assert/strict";
import type { JournalEntry, JournalQuery, NewEntry } from "../../../src/store/journal.ts";
import { HOUR_MS, type Promises, type StoreWorld } from "../../support/store-world.ts";
import { column } from "../../support/columns.ts";

function entry(fields: Partial<NewEntry> = {}): NewEntry {
  return { kind: "audit", node: "node-a", actor: null, subject: null, detail: {}, agoMs: 0, ...fields };
}

async function subjects(world: StoreWorld, query: Partial<JournalQuery> = {}): Promise<(string | null)[]> {
  return (await world.store.journal.list({ limit: 100, ...query })).map(({ subject }) => subject);
}

async function written(world: StoreWorld, ...entries: Partial<NewEntry>[]): Promise<void> {
  await world.store.journal.append(entries.map(entry));
}

export const journalPromises: Promises = {
  "entries are told newest first, as they were written, with the instant at which it happened": async (
    world,
  ) => {
    const now = world.clock.now();
    const odd = { text: "a \u0000 ü '\"", list: [1, null], deep: { yes: true } };
    await written(
      world,
      { kind: "term.ended", subject: "scheduler", detail: odd, agoMs: 2_000 },
      { kind: "audit", actor: "anna", node: "node-b", subject: "queue mail" },
    );
    const found: readonly JournalEntry[] = await world.store.journal.list({ limit: 10 });
    assert.deepEqual(
      found.map(({ at, kind, node: by, actor, subject, detail }) => ({
        at,
        kind,
        node: by,
        actor,
        subject,
        detail,
      })),
      [
        { at: now, kind: "audit", node: "node-b", actor: "anna", subject: "queue mail", detail: {} },
        {
          at: now - 2_000,
          kind: "term.ended",
          node: "node-a",
          actor: null,
          subject: "scheduler",
          detail: odd,
        },
      ],
    );
    assert.ok(found.every(({ id }) => /^\d+$/.test(id)));
    assert.ok(Number(found[0]!.id) > Number(found[1]!.id));
  },

  "no entries at all are fine": async (world) => {
    await world.store.journal.append([]);
    assert.deepEqual(await world.store.journal.list({ limit: 10 }), []);
  },

  "entries are found by their kinds and by what they are about": async (world) => {
    await written(
      world,
      { kind: "node.joined", subject: "a" },
      { kind: "term.started", subject: "scheduler" },
      { kind: "node.dead", subject: "a" },
      { kind: "node.dead", subject: "b" },
      { kind: "handoff", subject: null },
    );
    assert.deepEqual(await subjects(world, { kinds: ["node.dead", "node.joined"] }), ["b", "a", "a"]);
    assert.deepEqual(await subjects(world, { kinds: ["node.dead", "node.dead"] }), ["b", "a"]);
    assert.deepEqual(await subjects(world, { kinds: [] }), []);
    assert.deepEqual(column(await world.store.journal.list({ subject: "a", limit: 10 }), "kind"), [
      "node.dead",
      "node.joined",
    ]);
    assert.deepEqual(await subjects(world, { subject: "a", kinds: ["node.dead", "audit"] }), ["a"]);
    assert.deepEqual(await subjects(world, { subject: "nobody" }), []);
  },

  "a list goes on where the last one ended, whatever is written meanwhile": async (world) => {
    await written(
      world,
      ...Array.from({ length: 25 }, (_, n) => ({ subject: `${n}`, kind: "handoff" as const })),
    );
    const seen: (string | null)[] = [];
    for (let before: string | undefined; ;) {
      const page = await world.store.journal.list({
        limit: 10,
        kinds: ["handoff", "audit"],
        ...(before !== undefined && { before }),
      });
      seen.push(...page.map(({ subject }) => subject));
      if (page.length < 10) break;
      before = page.at(-1)!.id;
      await written(world, { subject: "late" });
    }
    assert.deepEqual(
      seen,
      Array.from({ length: 25 }, (_, n) => `${24 - n}`),
    );
    assert.equal((await subjects(world)).length, 27);
  },

  "entries older than their time are removed, of the oldest so many at a time": async (world) => {
    const term = await world.term();
    for (let n = 0; n < 6; n++) {
      await written(world, { subject: `${n}` });
      await world.clock.advance(HOUR_MS);
    }
    assert.equal(await world.store.purge({ of: "journal", ageMs: 3 * HOUR_MS, limit: 2 }, term), 2);
    assert.deepEqual(await subjects(world), ["5", "4", "3", "2"]);
    assert.equal(await world.store.purge({ of: "journal", ageMs: 3 * HOUR_MS, limit: 100 }, term), 2);
    assert.equal(await world.store.purge({ of: "journal", ageMs: 3 * HOUR_MS, limit: 100 }, term), 0);
    assert.deepEqual(await subjects(world), ["5", "4"]);
  },

  "a number is not given again when its entry is gone": async (world) => {
    const term = await world.term();
    await written(world, {}, {});
    const [last] = await world.store.journal.list({ limit: 1 });
    await world.clock.advance(1);
    await world.store.purge({ of: "journal", ageMs: 0, limit: 100 }, term);
    await written(world, {});
    const [next] = await world.store.journal.list({ limit: 1 });
    assert.ok(Number(next!.id) > Number(last!.id));
  },
};

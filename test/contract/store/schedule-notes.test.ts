/** What a store keeps of schedules for its cluster. */

import assert from "node:assert/strict";
import { jobId } from "../../../src/core/ids.ts";
import { type OpenRun, putNote, type ScheduleNote } from "../../../src/core/schedules/schedule-register.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import type { NoteBatch, Placing, ScheduleNotes } from "../../../src/store/schedule-notes.ts";
import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import type { NotedOccurrence } from "../../../src/store/store.ts";
import { NODE, type Promises, type StoreWorld } from "../../support/store-world.ts";
import { column } from "../../support/columns.ts";
import { proveOnStore } from "./contract.ts";

const UUID = "00000000-0000-7000-a000-000000000001";
const JOB = jobId(NODE, UUID);
const term = (epoch: number): Term => ({ role: "scheduler", leader: NODE, incarnation: "1", epoch });
const stale = { code: "STALE_EPOCH" };

function noteOf(
  world: StoreWorld,
  version: [number, number],
  fields: Partial<ScheduleNote> = {},
): ScheduleNote {
  const { draft } = putNote(undefined, world.definition({ name: fields.name ?? "nightly" }), 5, 1);
  return { ...draft!, version: { epoch: version[0], counter: version[1] }, ...fields };
}

const open = (at: number): ScheduleNote["open"] => {
  const run: OpenRun = { at, runAt: at, job: JOB, target: NODE };
  return [{ template: null, runs: [run] }];
};

const row = (at: number, leaderEpoch: number, job: string): NotedOccurrence => ({
  schedule: "nightly",
  at,
  do: "fire",
  reason: null,
  job: jobId(NODE, job),
  leaderEpoch,
  notedAt: 1,
});

function notesOf(world: StoreWorld): ScheduleNotes {
  return world.store.scheduleNotes!;
}

function write(world: StoreWorld, epoch: number, batch: Partial<NoteBatch>): Promise<{ blank: boolean }> {
  return notesOf(world).write({ notes: [], occurrences: [], complete: false, ...batch }, term(epoch));
}

async function noteNamed(world: StoreWorld, name: string): Promise<ScheduleNote | null> {
  return (await notesOf(world).read({ name })).notes[0] ?? null;
}

async function isBlank(world: StoreWorld): Promise<boolean> {
  const { blank } = await notesOf(world).read("pauses");
  assert.equal((await notesOf(world).read({ name: "nightly" })).blank, blank);
  return blank;
}

async function place(world: StoreWorld, version: [number, number], takes = true): Promise<string> {
  const run: Placing = {
    schedule: "nightly",
    at: 5,
    version: { epoch: version[0], counter: version[1] },
    job: world.newJob({ id: JOB, runAt: 5 }),
  };
  const [verdict] = await notesOf(world).place([run], { self: NODE, takes }, term(version[0]));
  return verdict!;
}

const promises: Promises = {
  "the higher version stays, and is what the schedule shows": async (world) => {
    const second = noteOf(world, [1, 2], { open: open(5) });
    await write(world, 1, { notes: [second] });
    await write(world, 1, { notes: [noteOf(world, [1, 1], { schedule: null })] });
    assert.deepEqual(await noteNamed(world, "nightly"), second);
    assert.deepEqual(await world.store.schedules.get("nightly"), second.schedule);
    await write(world, 2, { notes: [noteOf(world, [2, 1], { schedule: null })] });
    assert.equal(await world.store.schedules.get("nightly"), null);
    assert.deepEqual(await world.store.schedules.list(), []);
  },

  "an older term is refused whatever it asks, and leaves nothing behind": async (world) => {
    await write(world, 2, {});
    await assert.rejects(write(world, 1, { notes: [noteOf(world, [1, 9])], complete: true }), stale);
    await assert.rejects(notesOf(world).read({ after: null, limit: 5 }, term(1)), stale);
    await assert.rejects(place(world, [1, 9]), stale);
    await assert.rejects(notesOf(world).forget([], term(1)), stale);
    await assert.rejects(
      notesOf(world).read({ after: null, limit: 5 }, { ...term(2), incarnation: "2" }),
      stale,
    );
    assert.equal(await noteNamed(world, "nightly"), null);
    assert.equal(await isBlank(world), true);
    assert.equal(await world.store.jobs.get(JOB), null);
  },

  "asking is enough to shut out older terms": async (world) => {
    await notesOf(world).read({ after: null, limit: 5 }, term(3));
    assert.deepEqual(await world.store.terms.read("scheduler"), term(3));
    await assert.rejects(write(world, 2, {}), stale);
  },

  "a store is blank until a leader says that it has all": async (world) => {
    assert.deepEqual(await write(world, 1, { notes: [noteOf(world, [1, 1])] }), { blank: true });
    assert.deepEqual(await write(world, 1, { complete: true }), { blank: false });
    assert.deepEqual(await write(world, 2, { complete: true }), { blank: false });
    assert.equal(await isBlank(world), false);
  },

  "notes are read page by page, with schedules that nobody has noted": async (world) => {
    await world.store.schedules.put(world.definition({ name: "b" }), 7);
    await write(world, 1, { notes: ["a", "c", "d"].map((name, n) => noteOf(world, [1, n + 1], { name })) });
    const { notes: first, blank } = await notesOf(world).read({ after: null, limit: 2 }, term(1));
    const { notes: second } = await notesOf(world).read({ after: "b", limit: 5 }, term(1));
    assert.equal(blank, true);
    assert.deepEqual(
      [...first, ...second].map(({ name, version }) => [name, version.epoch]),
      [
        ["a", 1],
        ["b", 0],
        ["c", 1],
        ["d", 1],
      ],
    );
    assert.deepEqual(first[1]!.schedule, await world.store.schedules.get("b"));
  },

  "an occurrence gives way to that of a newer term, and to no other": async (world) => {
    const [a, b, c] = ["1", "2", "3"].map((digit) => UUID.slice(0, -1) + digit) as [string, string, string];
    await write(world, 2, { notes: [noteOf(world, [2, 1])], occurrences: [row(5, 2, a)] });
    await write(world, 2, { occurrences: [row(5, 1, b), row(6, 1, b)] });
    await write(world, 2, { notes: [noteOf(world, [2, 1])], occurrences: [row(5, 2, c)] });
    const jobs = async (): Promise<unknown[]> =>
      (await world.store.schedules.history("nightly", 9)).map(({ at, job }) => [at, job?.slice(-1)]);
    assert.deepEqual(await jobs(), [
      [6, "2"],
      [5, "1"],
    ]);
    await write(world, 2, { notes: [noteOf(world, [2, 2])], occurrences: [row(5, 2, c), row(6, 2, c)] });
    assert.deepEqual(await jobs(), [
      [6, "3"],
      [5, "3"],
    ]);
    assert.deepEqual(column(await world.store.schedules.history("nightly", [4, 5]), "at"), [5]);
  },

  "a run's job is stored once, also after it is gone": async (world) => {
    await write(world, 1, { notes: [noteOf(world, [1, 1], { open: open(5) })] });
    assert.equal(await place(world, [1, 1]), "stored");
    const job = await world.job(JOB);
    assert.deepEqual([job.schedule, job.owner, job.leaderEpoch, job.runAt], ["nightly", NODE, 1, 5]);
    assert.equal(await place(world, [1, 1]), "already");
    assert.equal(await world.store.jobs.remove(JOB), "removed");
    assert.equal(await place(world, [2, 1]), "already");
    assert.equal(await world.store.jobs.get(JOB), null);
  },

  "a refusal holds for what was sent before it, and not for what is noted anew": async (world) => {
    assert.equal(await place(world, [1, 1], false), "absent");
    assert.equal(await place(world, [1, 1]), "absent");
    assert.equal(await world.store.jobs.get(JOB), null);
    assert.equal(await place(world, [1, 2]), "stored");
    assert.equal(await place(world, [1, 2], false), "already");
  },

  "a run that a newer note has done with, or gives to another node, is not stored": async (world) => {
    await write(world, 1, { notes: [noteOf(world, [1, 2])] });
    assert.equal(await place(world, [1, 1]), "already");
    const [group] = open(5);
    const elsewhere = [{ ...group!, runs: [{ ...group!.runs[0]!, target: "node-b" as typeof NODE }] }];
    await write(world, 1, { notes: [noteOf(world, [1, 3], { open: elsewhere })] });
    assert.equal(await place(world, [1, 2]), "already");
    assert.equal(await world.store.jobs.get(JOB), null);
  },

  "one note without the run is not reason enough to forget it, for the next leader may ask again": async (
    world,
  ) => {
    await write(world, 1, { notes: [noteOf(world, [1, 1], { open: open(5) })] });
    await place(world, [1, 1]);
    await world.store.jobs.remove(JOB);
    await write(world, 1, { notes: [noteOf(world, [1, 2])] });
    await write(world, 2, { notes: [noteOf(world, [2, 1], { open: open(5) })] });
    assert.equal(await place(world, [2, 1]), "already");
    // The second one of the same leader says that a majority has the first.
    await write(world, 2, { notes: [noteOf(world, [2, 2])] });
    await write(world, 2, { notes: [noteOf(world, [2, 3])] });
    await write(world, 3, { notes: [noteOf(world, [3, 1], { open: open(5) })] });
    assert.equal(await place(world, [3, 1]), "stored");
  },

  "only a removal of exactly that version is forgotten": async (world) => {
    const forget = (name: string, version: [number, number]): Promise<void> =>
      notesOf(world).forget([{ name, version: { epoch: version[0], counter: version[1] } }], term(1));
    await write(world, 1, {
      notes: [noteOf(world, [1, 1], { schedule: null }), noteOf(world, [1, 2], { name: "other" })],
    });
    await forget("nightly", [1, 9]);
    await forget("other", [1, 2]);
    await forget("nothing", [1, 1]);
    assert.notEqual(await noteNamed(world, "nightly"), null);
    assert.notEqual(await noteNamed(world, "other"), null);
    await forget("nightly", [1, 1]);
    assert.equal(await noteNamed(world, "nightly"), null);
  },

  "all of it is there after a restart": async (world) => {
    const note = noteOf(world, [1, 1], { open: open(5) });
    await write(world, 1, { notes: [note], occurrences: [row(5, 1, UUID)], complete: true });
    await place(world, [1, 1]);
    await world.store.jobs.remove(JOB);
    await world.reopen();
    assert.deepEqual(await noteNamed(world, "nightly"), note);
    assert.equal((await world.store.schedules.history("nightly", 5)).length, 1);
    assert.equal(await isBlank(world), false);
    assert.equal(await place(world, [1, 1]), "already");
    await assert.rejects(write(world, 0, {}), stale);
  },
};

proveOnStore("the sqlite store", ({ clock, dir }) => openSqliteStore({ dir, clock }), {
  "schedule notes": promises,
});

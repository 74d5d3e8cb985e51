import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import type { JobId, NodeName } from "../../../../src/core/ids.ts";
import {
  closeRuns,
  compareVersions,
  fireNote,
  moveRuns,
  openRuns,
  type PlannedRun,
  putNote,
  removeNote,
  type ScheduleNote,
} from "../../../../src/core/schedules/schedule-register.ts";
import { majorityOf } from "../../../../src/core/leadership/bully.ts";
import { newestNotes, readEnough, type Witness } from "../../../../src/core/schedules/schedule-takeover.ts";
import { definition } from "../../../support/replica-world.ts";
import { column, columns } from "../../../support/columns.ts";

const A = "node-a" as NodeName;
const B = "node-b" as NodeName;
const TEMPLATE = {
  task: "work",
  queue: "default",
  priority: 0,
  payload: "1",
  maxAttempts: 3,
  timeoutMs: null,
};

function noted(fields: Partial<ScheduleNote> = {}): ScheduleNote {
  const { draft } = putNote(undefined, definition(), 1_000, 0);
  return { ...draft!, version: { epoch: 1, counter: 1 }, ...fields };
}

function planned(at: number, payload = "1"): PlannedRun {
  const run = { at, runAt: at, job: `${A}-${at}` as JobId, target: A, template: { ...TEMPLATE, payload } };
  return { at, do: "fire", reason: null, run };
}

const FACTS = { nextAt: 9_000, noted: new Set<number>(), predecessorRuns: false, epoch: 1, now: 5 } as const;

void describe("a schedule's register", () => {
  void test("a run keeps what it was intended with when its schedule is replaced or removed", () => {
    const { draft } = fireNote(noted(), [planned(1), planned(2, "other")], { ...FACTS, overlap: "allow" });
    const note = { ...draft, version: { epoch: 1, counter: 2 } };
    assert.deepEqual(
      note.open.map(({ template, runs }) => [template?.payload ?? null, runs.length]),
      [
        [null, 1],
        ["other", 1],
      ],
    );
    const replaced = putNote(note, definition({ payload: "new" }), 7, 6).draft!;
    for (const next of [replaced, removeNote(note, 6)]) {
      assert.deepEqual(
        openRuns(next).map(({ template }) => template.payload),
        ["1", "other"],
      );
    }
  });

  void test("an occurrence that is noted makes nothing, also when it comes twice in one firing", () => {
    const facts = { ...FACTS, noted: new Set([1]), overlap: "allow" as const };
    const { verdicts, rows, draft } = fireNote(noted(), [planned(1), planned(2), planned(2)], facts);
    assert.deepEqual(verdicts, ["already", "fired", "already"]);
    assert.deepEqual(column(rows, "at"), [2]);
    assert.equal(draft.notedThrough, 2);
  });

  void test("a run that moves takes its id, its row and the schedule's last job along", () => {
    const { draft } = fireNote(noted(), [planned(1), planned(2)], { ...FACTS, overlap: "allow" });
    const to = new Map([[2, { target: B, job: `${B}-2` as JobId }]]);
    const moved = moveRuns({ ...draft, version: { epoch: 1, counter: 2 } }, to, { epoch: 3, now: 8 });
    assert.deepEqual(columns(openRuns(moved.draft), "at", "target", "job"), [
      [1, A, "node-a-1"],
      [2, B, "node-b-2"],
    ]);
    assert.equal(moved.draft.schedule!.lastJob, "node-b-2");
    assert.deepEqual(columns(moved.rows, "at", "job", "leaderEpoch"), [[2, "node-b-2", 3]]);
  });

  void test("closing takes out what is done and nothing else; of nothing it makes no new note", () => {
    const { draft } = fireNote(noted(), [planned(1), planned(2)], { ...FACTS, overlap: "allow" });
    assert.equal(
      closeRuns(draft, () => false),
      draft,
    );
    assert.deepEqual(column(openRuns(closeRuns(draft, ({ at }) => at === 1)), "at"), [2]);
    assert.deepEqual(closeRuns(draft, () => true).open, []);
  });

  void test("whatever a majority has noted, every majority finds", () => {
    const versions = fc.record({
      epoch: fc.integer({ min: 1, max: 4 }),
      counter: fc.integer({ min: 1, max: 4 }),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 7 }),
        fc.infiniteStream(fc.nat()),
        versions,
        fc.array(versions, { maxLength: 6 }),
        (members, chance, written, others) => {
          const order = (): number[] =>
            Array.from({ length: members }, (_, node) => ({ node, key: chance.next().value as number }))
              .sort((a, b) => a.key - b.key)
              .map(({ node }) => node);
          const kept = new Map<number, ScheduleNote>();
          for (const version of others.filter((other) => compareVersions(other, written) < 0)) {
            kept.set(order()[0]!, noted({ version }));
          }
          for (const node of order().slice(0, majorityOf(members)))
            kept.set(node, noted({ version: written }));
          const asked = order().slice(0, majorityOf(members));
          const answers = new Map(asked.map((node) => [`${node}`, kept.has(node) ? [kept.get(node)!] : []]));
          assert.deepEqual(newestNotes(answers, `${asked[0]}`).get("tick")!.note.version, written);
        },
      ),
    );
  });

  void test("of two that nobody noted the leader's own counts", () => {
    const own = noted({ version: { epoch: 0, counter: 0 }, changedAt: 1 });
    const other = noted({ version: { epoch: 0, counter: 0 }, changedAt: 2 });
    const answers = new Map([
      [A, [other]],
      [B, [own]],
    ]);
    assert.equal(newestNotes(answers, B).get("tick")!.from, B);
  });
});

void describe("reading enough", () => {
  const sound = { blank: false, returned: false };
  const blank = { blank: true, returned: false };
  const returned = { blank: false, returned: true };
  const enough = (members: number, answers: Witness[], left: number): boolean =>
    readEnough({ members, required: majorityOf(members), answers, left });

  void test("a majority that has been brought up to date is enough, before the others have answered", () => {
    assert.equal(enough(3, [sound], 2), false);
    assert.equal(enough(3, [sound, sound], 1), true);
  });

  void test("an empty disk does not count beside one that is not, unless everybody has answered", () => {
    assert.equal(enough(3, [sound, blank], 1), false);
    assert.equal(enough(3, [sound, blank], 0), false);
    assert.equal(enough(3, [sound, blank, blank], 0), true);
  });

  void test("a new cluster begins with a majority, once the rest has had its chance to answer", () => {
    assert.equal(enough(3, [blank, blank], 1), false);
    assert.equal(enough(3, [blank, blank], 0), true);
    assert.equal(enough(3, [blank], 0), false);
  });

  void test("nodes that were removed and joined again are no witnesses, and no new cluster either", () => {
    assert.equal(enough(3, [sound, returned], 0), false);
    assert.equal(enough(3, [returned, returned], 0), false);
    assert.equal(enough(3, [blank, returned], 0), false);
    assert.equal(enough(3, [returned, returned, sound], 0), true);
  });
});

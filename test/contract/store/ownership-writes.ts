import assert from "node:assert/strict";
import type { Outcome, Run } from "../../../src/store/store.ts";
import { AUTHOR, ERROR, lease, NODE, type Promises, STOPPED_ERROR } from "../../support/store-world.ts";
import {
  A,
  accept,
  B,
  COMPLETED,
  dispatched,
  owned,
  ownershipOf,
  settleOwned,
  wanted,
  writeOwned,
  unfinished,
} from "./ownership-world.ts";
import { column, columns } from "../../support/columns.ts";

const line = (message: string) => ({ at: 7, level: "info" as const, message });
const logged = (run: Run, message: string) => ({ run, logs: [line(message)], progress: null });

export const ownedWritePromises: Promises = {
  "an owner writes every kind of end, as a worker would by itself": async (world) => {
    const { held, runs } = await owned(world, 6);
    const outcomes: Outcome[] = [
      { kind: "completed", result: '{"n":1}' },
      { kind: "failed", error: ERROR, spends: "failure" },
      { kind: "cancelled", error: STOPPED_ERROR },
      { kind: "retry", error: ERROR, delayMs: 500 },
      { kind: "interrupted" },
      { kind: "released" },
    ];
    const settlements = outcomes.map((outcome, at) => ({ run: runs[at]!, outcome }));
    assert.deepEqual(await writeOwned(world, held, { settlements }), {
      reported: [],
      settled: Array(6).fill("accepted"),
    });
    const jobs = await Promise.all(runs.map(({ id }) => world.job(id)));
    assert.deepEqual(columns(jobs, "status", "attempts", "failures", "interruptions"), [
      ["completed", 1, 0, 0],
      ["failed", 1, 1, 0],
      ["cancelled", 1, 0, 0],
      ["scheduled", 1, 1, 0],
      ["queued", 1, 0, 1],
      ["queued", 0, 0, 0],
    ]);
    assert.equal(await world.store.jobs.result(runs[0]!.id), '{"n":1}');
    assert.deepEqual(await unfinished(world, [held.assignment]), [0]);
    assert.equal((await world.recover({ by: "incarnations", incarnations: ["1"] })).length, 0);
  },

  "a job that has ended shows who owned it then, whichever way it ended": async (world) => {
    const { held, runs } = await owned(world, 3);
    const [ownerEpoch] = await ownershipOf(world).own([held], B);
    const next = { ...held, ownerEpoch: ownerEpoch! };
    await settleOwned(world, next, runs[0]!, COMPLETED, B);
    await settleOwned(world, next, runs[1]!, { kind: "failed", error: ERROR, spends: "failure" }, B);
    await world.finish(runs[2]!, "1");
    await ownershipOf(world).release([next], B, "finished");
    const shown = await Promise.all(runs.map(({ id }) => world.job(id)));
    assert.deepEqual(
      shown.map(({ owner, ownerEpoch: epoch }) => [owner, epoch]),
      [
        [B.name, 2],
        [B.name, 2],
        [NODE, AUTHOR.ownerEpoch], // its worker wrote that down by itself
      ],
    );
  },

  "runs that have only completed are written with their results": async (world) => {
    const { held, runs } = await owned(world, 3);
    const settlements = ["null", '"two"', "3"].map((result, at) => ({
      run: runs[at]!,
      outcome: { kind: "completed", result } as const,
    }));
    const answer = await writeOwned(world, held, { settlements });
    assert.deepEqual(answer!.settled, ["accepted", "accepted", "accepted"]);
    assert.deepEqual(await Promise.all(runs.map(({ id }) => world.store.jobs.result(id))), [
      "null",
      '"two"',
      "3",
    ]);
    assert.deepEqual(await world.counts(), { completed: 3 });
  },

  "a batch over several assignments and leases is written at once, each answered for itself": async (
    world,
  ) => {
    await world.submitMany(4);
    const assignments = await dispatched(world, { size: 2 });
    const ownership = ownershipOf(world);
    await accept(world, [assignments[0]!]);
    await accept(world, [assignments[1]!], { lease: lease("node-b/2") });
    const [first, second] = assignments.map(({ id }) => ({ assignment: id, ownerEpoch: 1 }));
    await ownership.own(
      assignments.map(({ id }) => ({ assignment: id, ownerEpoch: 0 })),
      A,
    );
    const runs = [
      ...wanted([assignments[0]!]).runs.map((run) => ({ ...run, lease: lease("node-a/1") })),
      ...wanted([assignments[1]!]).runs.map((run) => ({ ...run, lease: lease("node-b/2") })),
    ];
    const settled = (at: number) => ({ run: runs[at]!, outcome: COMPLETED });
    const events = [
      { ...second!, reports: [], settlements: [settled(2)] },
      { ...first!, reports: [], settlements: [settled(0), settled(1)] },
      { ...second!, ownerEpoch: 9, reports: [], settlements: [settled(3)] },
      { ...first!, assignment: second!.assignment + 1_000, reports: [], settlements: [settled(3)] },
      { ...first!, reports: [], settlements: [] },
    ];
    assert.deepEqual(await ownership.record(events, A), [
      { reported: [], settled: ["accepted"] },
      { reported: [], settled: ["accepted", "accepted"] },
      null,
      null,
      { reported: [], settled: [] },
    ]);
    assert.equal(await world.status(runs[3]!.id), "processing");
    const [mixed] = await ownership.record(
      [{ ...second!, reports: [logged(runs[3]!, "last")], settlements: [settled(3), settled(2)] }],
      A,
    );
    assert.deepEqual(mixed, { reported: ["accepted"], settled: ["accepted", "replayed"] });
    assert.deepEqual(await ownership.record([], A), []);
  },

  "reports are written before settlements, in one transaction": async (world) => {
    const { held, runs } = await owned(world, 2);
    const answer = await writeOwned(world, held, {
      settlements: [{ run: runs[0]!, outcome: COMPLETED }],
      reports: [
        logged(runs[0]!, "one"),
        { run: runs[0]!, logs: [line("two")], progress: { value: 0.5, message: "half" } },
        logged(runs[1]!, "other"),
      ],
    });
    assert.deepEqual(answer, { reported: Array(3).fill("accepted"), settled: ["accepted"] });
    assert.deepEqual(columns(await world.logs(runs[0]!.id), "seq", "jobEpoch", "message"), [
      [1, 1, "one"],
      [2, 1, "two"],
    ]);
    const job = await world.job(runs[0]!.id);
    assert.deepEqual([job.status, job.progress, job.progressMessage], ["completed", 0.5, "half"]);
    assert.equal((await world.logs(runs[1]!.id)).length, 1);
    const late = await writeOwned(world, held, {
      reports: [logged(runs[0]!, "late"), logged(runs[1]!, "more")],
    });
    assert.deepEqual(late!.reported, ["stale", "accepted"]);
    assert.equal((await world.logs(runs[0]!.id)).length, 2);
  },

  "reports of one event come before the settlements of another": async (world) => {
    const { held, runs } = await owned(world);
    const answers = await ownershipOf(world).record(
      [
        { ...held, reports: [], settlements: [{ run: runs[0]!, outcome: COMPLETED }] },
        { ...held, reports: [logged(runs[0]!, "before the end")], settlements: [] },
      ],
      A,
    );
    assert.deepEqual(answers, [
      { reported: [], settled: ["accepted"] },
      { reported: ["accepted"], settled: [] },
    ]);
  },

  "the same settlement twice is replayed, also in one batch and after the job has gone on": async (world) => {
    const { held, runs } = await owned(world, 2);
    const once = { run: runs[0]!, outcome: COMPLETED };
    assert.deepEqual((await writeOwned(world, held, { settlements: [once, once] }))!.settled, [
      "accepted",
      "replayed",
    ]);
    assert.equal(await settleOwned(world, held, runs[0]!), "replayed");
    assert.equal(await world.settle(runs[0]!, COMPLETED), "replayed");
    assert.equal(await settleOwned(world, held, runs[1]!, { kind: "interrupted" }), "accepted");
    assert.equal(await settleOwned(world, held, runs[1]!, { kind: "interrupted" }), "replayed");
    await dispatched(world);
    assert.equal(await settleOwned(world, held, runs[1]!, { kind: "interrupted" }), "replayed");
    await world.again(runs[1]!.id);
    assert.equal(await settleOwned(world, held, runs[1]!, { kind: "interrupted" }), "stale");
    assert.deepEqual(await world.counts(), { completed: 1, processing: 1 });
  },

  "what the worker has settled by itself is replayed for the owner": async (world) => {
    const { held, runs } = await owned(world);
    await world.finish(runs[0]!, "1");
    assert.equal(await settleOwned(world, held, runs[0]!, { kind: "completed", result: "2" }), "replayed");
    assert.equal(await world.store.jobs.result(runs[0]!.id), "1");
  },

  "after a handoff the old owner writes nothing, and the new one does": async (world) => {
    const { held, runs } = await owned(world, 2);
    const [ownerEpoch] = await ownershipOf(world).own([held], B);
    const before = await world.job(runs[0]!.id);
    assert.equal(await settleOwned(world, held, runs[0]!), null);
    assert.equal(await settleOwned(world, { ...held, ownerEpoch: ownerEpoch! }, runs[0]!), null);
    assert.equal(await settleOwned(world, held, runs[0]!, { kind: "interrupted" }), null);
    assert.equal(await writeOwned(world, held, { reports: [logged(runs[0]!, "late")] }), null);
    assert.deepEqual(await world.job(runs[0]!.id), before);
    assert.deepEqual(await world.logs(runs[0]!.id), []);
    const next = { ...held, ownerEpoch: ownerEpoch! };
    assert.equal(await settleOwned(world, next, runs[0]!, COMPLETED, B), "accepted");
    assert.equal(await settleOwned(world, next, runs[1]!, { kind: "interrupted" }, B), "accepted");
  },

  "who was disowned, has released or has forgotten an assignment writes nothing": async (world) => {
    const ownership = ownershipOf(world);
    const ways = [
      async () => void (await ownership.disown([A.incarnation], await world.term())),
      (held: { assignment: number; ownerEpoch: number }) => ownership.release([held], A, "unowned"),
      (held: { assignment: number; ownerEpoch: number }) => ownership.release([held], A, "finished"),
    ];
    for (const way of ways) {
      const { held, runs } = await owned(world);
      await way(held);
      assert.equal(await settleOwned(world, held, runs[0]!), null);
      assert.equal(await settleOwned(world, held, runs[0]!, { kind: "interrupted" }), null);
      assert.equal(await world.status(runs[0]!.id), "processing");
      await world.finish(runs[0]!);
    }
  },

  "settlements that race a handoff are written by one owner or the other": async (world) => {
    const { held, runs } = await owned(world, 20);
    const next = { ...held, ownerEpoch: 2 };
    const [byOld, [epoch], byNew] = await Promise.all([
      Promise.all(runs.map((run) => settleOwned(world, held, run))),
      ownershipOf(world).own([held], B),
      Promise.all(runs.map((run) => settleOwned(world, next, run, COMPLETED, B))),
    ]);
    assert.equal(epoch, 2);
    const after = await Promise.all(runs.map((run) => settleOwned(world, next, run, COMPLETED, B)));
    for (const at of runs.keys()) {
      const verdicts = [byOld[at], byNew[at], after[at]];
      assert.equal(verdicts.filter((verdict) => verdict === "accepted").length, 1, verdicts.join());
      assert.ok(!verdicts.includes("stale") && !verdicts.includes("missing"), verdicts.join());
    }
    assert.deepEqual(await world.counts(), { completed: 20 });
  },

  "a run that was recovered is stale, and so is one of another assignment": async (world) => {
    const { held, runs } = await owned(world);
    const other = await owned(world);
    for (const outcome of [COMPLETED, { kind: "interrupted" } as const])
      assert.equal(await settleOwned(world, other.held, runs[0]!, outcome), "stale");
    const foreign = await writeOwned(world, other.held, { reports: [logged(runs[0]!, "whose?")] });
    assert.deepEqual(foreign!.reported, ["stale"]);
    await world.recover({ by: "incarnations", incarnations: ["1"] });
    for (const outcome of [COMPLETED, { kind: "interrupted" } as const])
      assert.equal(await settleOwned(world, held, runs[0]!, outcome), "stale");
    assert.equal(await world.status(runs[0]!.id), "queued");
    await accept(world, await dispatched(world), { lease: lease("node-b/2") });
    assert.equal(await settleOwned(world, held, runs[0]!), "stale");
    assert.equal(await world.status(runs[0]!.id), "processing");
  },

  "a job that is gone is missing, and one without the keeper's number is found": async (world) => {
    const { held, runs } = await owned(world, 2);
    const bare = runs.map(({ id, jobEpoch, lease: name }) => ({ id, jobEpoch, lease: name }));
    const unknown = { ...bare[0]!, id: world.newId() };
    const answer = await writeOwned(world, held, {
      reports: [logged(unknown, "nothing"), logged(bare[1]!, "something")],
      settlements: [unknown, bare[0]!].map((run) => ({ run, outcome: COMPLETED })),
    });
    assert.deepEqual(answer, { reported: ["missing", "accepted"], settled: ["missing", "accepted"] });
    assert.equal(await settleOwned(world, held, bare[1]!), "accepted");
  },

  "a job that was to be cancelled does not return to the queue": async (world) => {
    const { held, runs } = await owned(world);
    await world.store.jobs.cancel(runs[0]!.id, "not wanted");
    const { cancelled } = await world.store.jobs.renew(runs[0]!.lease, 30_000);
    assert.deepEqual(column(cancelled, "id"), [runs[0]!.id]);
    assert.equal(await settleOwned(world, held, runs[0]!, { kind: "interrupted" }), "accepted");
    assert.equal(await world.status(runs[0]!.id), "cancelled");
  },
};

import assert from "node:assert/strict";
import { AUTHOR, type Promises } from "../../support/store-world.ts";
import {
  A,
  accept,
  B,
  dispatched,
  jobsOf,
  owned,
  ownershipOf,
  settleOwned,
  unfinished,
} from "./ownership-world.ts";
import { column } from "../../support/columns.ts";

const UNOWNED_MS = 10_000;
const OFFERED_MS = 3_000;
const LOOK = { unownedForMs: UNOWNED_MS, offeredBeforeMs: OFFERED_MS, limit: 100 };

/** Who owns an assignment, and how it changes hands. */
export const handoffPromises: Promises = {
  "an assignment belongs to nobody until somebody owns it": async (world) => {
    await world.submit();
    const assignment = (await dispatched(world))[0]!.id;
    const ownership = ownershipOf(world);
    assert.deepEqual(await ownership.read([assignment, assignment + 1_000]), [
      { assignment, ownerEpoch: 0, owner: null, state: "unowned" },
      null,
    ]);
    assert.deepEqual(await ownership.own([{ assignment, ownerEpoch: 0 }], A), [1]);
    assert.deepEqual(await ownership.read([assignment]), [
      { assignment, ownerEpoch: 1, owner: A, state: "owned" },
    ]);
  },

  "of all who take an assignment over one gets the next epoch": async (world) => {
    const { held } = await owned(world);
    const candidates = Array.from({ length: 6 }, (_, at) => ({ ...B, incarnation: `b-${at}` }));
    const answers = await Promise.all(candidates.map((node) => ownershipOf(world).own([held], node)));
    const winners = answers.flatMap(([epoch], at) => (epoch === null ? [] : [{ epoch, at }]));
    assert.equal(winners.length, 1);
    assert.equal(winners[0]!.epoch, 2);
    const [now] = await ownershipOf(world).read([held.assignment]);
    assert.equal(now!.owner!.incarnation, candidates[winners[0]!.at]!.incarnation);
    assert.equal(now!.ownerEpoch, 2);
  },

  "each of a batch is answered for itself": async (world) => {
    await world.submitMany(3);
    const ids = (await dispatched(world, { size: 1 })).map(({ id }) => id);
    const ownership = ownershipOf(world);
    await ownership.own([{ assignment: ids[1]!, ownerEpoch: 0 }], B);
    const claims = [ids[2]!, ids[1]!, ids[0]!, ids[0]! + 1_000, ids[2]!];
    assert.deepEqual(
      await ownership.own(
        claims.map((assignment) => ({ assignment, ownerEpoch: 0 })),
        A,
      ),
      [1, null, 1, null, null],
    );
    assert.deepEqual(await ownership.own([], A), []);
    assert.deepEqual(
      (await ownership.read(ids)).map((each) => each!.owner!.name),
      [A.name, B.name, A.name],
    );
  },

  "a job belongs to whoever owns its assignment, as long as it is in it": async (world) => {
    const { held, runs } = await owned(world, 2);
    const told = async (at: number) => {
      const { owner, ownerEpoch } = await world.job(runs[at]!.id);
      return [owner, ownerEpoch];
    };
    const author = [AUTHOR.node, AUTHOR.ownerEpoch];
    assert.deepEqual(await told(0), [A.name, 1]);
    await ownershipOf(world).own([held], B);
    assert.deepEqual(await told(0), [B.name, 2]);
    assert.deepEqual(
      column((await world.store.jobs.list({ limit: 10, status: "processing" })).jobs, "owner"),
      [B.name, B.name],
    );
    await world.settle(runs[0]!, { kind: "interrupted" });
    assert.deepEqual(await told(0), author);
    await ownershipOf(world).release([{ ...held, ownerEpoch: 2 }], B, "unowned");
    assert.deepEqual(await told(1), author);
  },

  "a handoff does not disturb the worker": async (world) => {
    const { held, runs } = await owned(world);
    const before = await world.job(runs[0]!.id);
    await ownershipOf(world).own([held], B);
    await ownershipOf(world).disown([B.incarnation], await world.term());
    const { owner: _, ownerEpoch: __, ...after } = await world.job(runs[0]!.id);
    const { owner: ___, ownerEpoch: ____, ...untouched } = before;
    assert.deepEqual(after, untouched);
    assert.equal((await world.store.jobs.renew(runs[0]!.lease, 30_000)).held, true);
    await world.finish(runs[0]!);
  },

  "who gives up an assignment owns it no more, and the next epoch is still to come": async (world) => {
    const { held } = await owned(world);
    const ownership = ownershipOf(world);
    for (const [state, epoch] of [
      ["unowned", 1],
      ["orphan_pending", 2],
    ] as const) {
      const mine = { ...held, ownerEpoch: epoch };
      await ownership.release([mine], A, state);
      assert.deepEqual(await ownership.read([held.assignment]), [{ ...mine, owner: null, state }]);
      assert.deepEqual(await ownership.own([mine], A), [epoch + 1]);
    }
  },

  "what belongs to others is neither released nor forgotten": async (world) => {
    const { held } = await owned(world);
    const ownership = ownershipOf(world);
    for (const [wrong, by] of [
      [held, B],
      [{ ...held, ownerEpoch: 2 }, A],
    ] as const) {
      await ownership.release([wrong], by, "orphan_pending");
      await ownership.release([wrong], by, "finished");
    }
    assert.deepEqual(await ownership.read([held.assignment]), [{ ...held, owner: A, state: "owned" }]);
    await ownership.release([held], A, "unowned");
    await ownership.release([held], A, "finished");
    assert.notEqual((await ownership.read([held.assignment]))[0], null);
  },

  "a forgotten assignment is gone, and its number is never given again": async (world) => {
    const { held, runs } = await owned(world);
    const ownership = ownershipOf(world);
    await settleOwned(world, held, runs[0]!);
    await ownership.release([held, { ...held, assignment: held.assignment + 1_000 }], A, "finished");
    assert.deepEqual(await ownership.read([held.assignment]), [null]);
    await ownership.release([held], A, "finished");
    await world.submit();
    assert.ok((await dispatched(world))[0]!.id > held.assignment);
  },

  "unfinished are the jobs that run or wait for a worker": async (world) => {
    const ids = await world.submitMany(5);
    const assignments = await dispatched(world, { size: 3 });
    const [first, second] = assignments.map(({ id }) => id) as [number, number];
    assert.deepEqual(await unfinished(world, [second, first, second + 1_000]), [2, 3, 0]);
    await accept(world, assignments);
    assert.deepEqual(await unfinished(world, [first, second]), [3, 2]);
    const outcomes = [
      { kind: "completed", result: "1" },
      { kind: "retry", error: { code: "ERROR", message: "once more" }, delayMs: 0 },
      { kind: "released" },
    ] as const;
    for (const [at, outcome] of outcomes.entries()) {
      const run = { id: ids[at]!, jobEpoch: 1, lease: world.request().lease };
      assert.equal(await world.settle(run, outcome), "accepted");
    }
    assert.deepEqual(await unfinished(world, [first, second]), [0, 2]);
    assert.deepEqual(await unfinished(world, []), []);
  },

  "what the dead owned belongs to nobody, and only that": async (world) => {
    const first = await owned(world, 1, { owner: A });
    const second = await owned(world, 1, { owner: { ...A, incarnation: "a-2" } });
    const third = await owned(world, 1, { owner: B });
    const ownership = ownershipOf(world);
    const term = await world.term();
    assert.equal(await ownership.disown([], term), 0);
    assert.equal(await ownership.disown(["a-1", "b-1", "nobody"], term), 2);
    assert.equal(await ownership.disown(["a-1", "b-1"], term), 0);
    const states = await ownership.read([first, second, third].map(({ held }) => held.assignment));
    assert.deepEqual(
      states.map((each) => [each!.state, each!.owner?.incarnation, each!.ownerEpoch]),
      [
        ["orphan_pending", undefined, 1],
        ["owned", "a-2", 1],
        ["orphan_pending", undefined, 1],
      ],
    );
    assert.deepEqual(await ownership.own([first.held], B), [2]);
  },

  "the lives that own anything are known": async (world) => {
    const ownership = ownershipOf(world);
    assert.deepEqual(await ownership.owners(), []);
    const { held } = await owned(world);
    await owned(world);
    await owned(world, 1, { owner: B });
    const names = async (): Promise<string[]> =>
      (await ownership.owners()).map(({ name, incarnation }) => `${name}/${incarnation}`).sort();
    assert.deepEqual(await names(), ["node-a/a-1", "node-b/b-1"]);
    await ownership.own([held], B);
    await ownership.disown([A.incarnation], await world.term());
    assert.deepEqual(await names(), ["node-b/b-1"]);
  },

  "an old leader disowns nothing and finds no orphans": async (world) => {
    const old = await world.term();
    const { held } = await owned(world);
    await world.nextTerm("2");
    const ownership = ownershipOf(world);
    await assert.rejects(ownership.disown(["a-1"], old), { code: "STALE_EPOCH" });
    assert.equal((await ownership.read([held.assignment]))[0]!.state, "owned");
    await ownership.release([held], A, "orphan_pending");
    await assert.rejects(ownership.orphans(LOOK, old), { code: "STALE_EPOCH" });
    assert.equal((await ownership.orphans(LOOK, await world.term())).length, 1);
  },

  "orphans are found at once, the unowned after a while, and each again only later": async (world) => {
    const lost = (await owned(world)).held;
    const fine = (await owned(world, 1, { owner: B })).held;
    await world.submit();
    const [fresh] = await dispatched(world);
    const ownership = ownershipOf(world);
    const found = async () => {
      const orphans = await ownership.orphans(LOOK, await world.term());
      return orphans.map(({ assignment }) => assignment);
    };
    assert.deepEqual(await found(), []);
    await ownership.disown([A.incarnation], await world.term());
    assert.deepEqual(await ownership.orphans(LOOK, await world.term()), [{ ...lost, last: A.name }]);
    assert.deepEqual(await found(), []);
    await world.clock.advance(OFFERED_MS);
    assert.deepEqual(await found(), [lost.assignment]);
    await world.clock.advance(UNOWNED_MS - OFFERED_MS - 1);
    assert.deepEqual(await found(), [lost.assignment]);
    await world.clock.advance(1);
    assert.deepEqual(await found(), [fresh!.id]);
    await ownership.own([lost], B);
    await world.clock.advance(OFFERED_MS);
    assert.deepEqual(await found(), [fresh!.id]);
    assert.equal((await ownership.read([fine.assignment]))[0]!.state, "owned");
  },

  "an assignment that is given up again is offered again at once": async (world) => {
    const { held } = await owned(world);
    const ownership = ownershipOf(world);
    const term = await world.term();
    await ownership.release([held], A, "orphan_pending");
    assert.equal((await ownership.orphans(LOOK, term)).length, 1);
    await ownership.own([held], B);
    await ownership.release([{ ...held, ownerEpoch: 2 }], B, "orphan_pending");
    assert.deepEqual(column(await ownership.orphans(LOOK, term), "ownerEpoch"), [2]);
  },

  "no more orphans are found than the limit, and those without jobs are removed": async (world) => {
    await world.submitMany(8);
    const assignments = await dispatched(world, { size: 1 });
    const ids = assignments.map(({ id }) => id);
    for (const { id } of jobsOf(assignments.slice(0, 5))) await world.store.jobs.cancel(id, null);
    await world.clock.advance(UNOWNED_MS);
    const ownership = ownershipOf(world);
    const term = await world.term();
    const found: number[] = [];
    for (const count of [2, 1, 0]) {
      const some = await ownership.orphans({ ...LOOK, limit: 2 }, term);
      assert.equal(some.length, count);
      found.push(...some.map(({ assignment }) => assignment));
    }
    assert.deepEqual(found, ids.slice(5));
    assert.deepEqual(
      (await ownership.read(ids)).map((each) => each !== null),
      [false, false, false, false, false, true, true, true],
    );
  },

  "an assignment whose jobs have ended is not taken from its owner": async (world) => {
    const { held, runs } = await owned(world);
    await settleOwned(world, held, runs[0]!);
    await world.clock.advance(UNOWNED_MS);
    const ownership = ownershipOf(world);
    assert.deepEqual(await ownership.orphans(LOOK, await world.term()), []);
    assert.equal((await ownership.read([held.assignment]))[0]!.state, "owned");
  },
};

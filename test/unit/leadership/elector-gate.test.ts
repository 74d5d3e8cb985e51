/** Terms that begin when a gate opens, and nodes that are no candidates. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { LeaderGate } from "../../../src/leadership/elector.ts";
import { LeaderDuties } from "../../../src/leadership/leader-duties.ts";
import { Election, SETTINGS } from "../../support/lock-election.ts";

class Gate {
  readonly asked: { readonly epoch: number; readonly signal: AbortSignal; open(): void; refuse(): void }[] =
    [];
  readonly ask: LeaderGate = ({ epoch }, signal) =>
    new Promise((resolve, reject) =>
      this.asked.push({ epoch, signal, open: resolve, refuse: () => reject(new Error("no")) }),
    );
}

async function gated(election: Election) {
  const gate = new Gate();
  const ada = election.stander("ada", { gate: gate.ask });
  await ada.elector.start();
  await election.pass(0);
  return { gate, ...ada };
}

describe("an elector with a gate", () => {
  it("renews its term, but holds none and lets no duty begin before the gate is open", async () => {
    await using election = new Election();
    const { elector, gate, heard } = await gated(election);
    const begun: number[] = [];
    const duties = new LeaderDuties({
      leadership: elector,
      duties: { note: async ({ epoch }) => void begun.push(epoch) },
      clock: election.world,
    });
    await using _ = duties;
    await duties.start();
    await election.pass(3 * SETTINGS.leaseMs);
    assert.deepEqual([elector.held(), elector.current(), begun, heard], [null, null, [], []]);
    assert.throws(() => elector.require(), { code: "NOT_LEADER", message: /about to lead/ });
    assert.equal((await election.lock.read())?.epoch, 1, "no other node may begin meanwhile");

    gate.asked[0]!.open();
    await election.pass(0);
    assert.equal(elector.held()?.epoch, 1);
    assert.equal(elector.current()?.epoch, 1);
    assert.equal(elector.require().epoch, 1);
    assert.deepEqual([begun, heard], [[1], [1]]);
  });

  it("does not begin a term that ended before its gate was open, and asks anew for the next", async () => {
    await using election = new Election();
    const { elector, gate, heard } = await gated(election);
    await elector.resign();
    assert.equal(gate.asked[0]!.signal.aborted, true);
    await election.pass(3 * SETTINGS.retryMs);
    gate.asked[0]!.open();
    await election.pass(0);
    assert.equal(elector.held(), null, "that was the answer for another term");
    gate.asked[1]!.open();
    await election.pass(0);
    assert.deepEqual([elector.held()?.epoch, heard], [2, [2]]);
    await elector.resign();
    await election.pass(0);
    assert.deepEqual([elector.held(), heard], [null, [2, null]]);
  });

  it("gives the term up when the gate refuses, and another node leads", async () => {
    await using election = new Election();
    const { elector, gate, heard, logged } = await gated(election);
    const bob = election.stander("bob");
    await bob.elector.start();
    gate.asked[0]!.refuse();
    await election.pass(2 * SETTINGS.retryMs);
    assert.equal(bob.elector.held()?.epoch, 2);
    assert.deepEqual([elector.held(), heard], [null, []]);
    assert.ok(logged.includes("may not lead; giving the term up"));
    await election.pass(2 * SETTINGS.retryMs);
    assert.equal(elector.current()?.leader, "bob");
  });

  it("reports the end of a begun term when it is stopped", async () => {
    await using election = new Election();
    const { elector, gate, heard } = await gated(election);
    gate.asked[0]!.open();
    await election.pass(0);
    await elector.stop();
    await election.pass(0);
    assert.deepEqual(heard, [1, null]);
  });
});

describe("an elector that does not stand", () => {
  it("sees who leads and takes no free lock", async () => {
    await using election = new Election();
    const watching = election.stander("watching", { stands: () => false });
    await watching.elector.start();
    await election.pass(3 * SETTINGS.retryMs);
    assert.deepEqual([watching.elector.held(), watching.elector.current()], [null, null]);
    const { term } = await election.leader("ada");
    await election.pass(2 * SETTINGS.retryMs);
    assert.equal(watching.elector.current()?.epoch, term.epoch);
    assert.throws(() => watching.elector.require(), {
      code: "NOT_LEADER",
      message: /ada does, as last seen/,
    });
    assert.deepEqual(watching.heard, []);
  });

  it("knows no leader while the lock does not answer", async () => {
    await using election = new Election();
    const watching = election.stander("watching", { stands: () => false });
    await watching.elector.start();
    await election.leader("ada");
    await election.pass(2 * SETTINGS.retryMs);
    assert.ok(watching.elector.current());
    watching.lock.break("throws", "read");
    await election.pass(2 * SETTINGS.retryMs);
    assert.equal(watching.elector.current(), null);
    assert.ok(watching.elector.silence());
  });

  it("gives a term up at once when it stops standing, and leads again when it stands again", async () => {
    await using election = new Election();
    let stands = true;
    const ada = election.stander("ada", { stands: () => stands });
    await ada.elector.start();
    await election.pass(0);
    assert.equal(ada.elector.require().epoch, 1);
    stands = false;
    await ada.elector.reconsider();
    assert.equal(ada.elector.held(), null);
    assert.equal(await election.lock.read(), null, "others need not wait for the end of the lease");
    await election.pass(3 * SETTINGS.leaseMs);
    assert.equal(ada.elector.held(), null);
    stands = true;
    await ada.elector.reconsider();
    await election.pass(0);
    assert.equal(ada.elector.held()?.epoch, 2);
    assert.deepEqual(ada.heard, [1, null, 2]);
  });
});

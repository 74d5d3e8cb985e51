import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GatedLeadership, type LeaderGate } from "../../../src/leadership/gated-leadership.ts";
import { LeaderDuties } from "../../../src/leadership/leader-duties.ts";
import type { Leadership } from "../../../src/leadership/coordination.ts";
import { Feed } from "../../../src/platform/feed.ts";
import { BatonError } from "../../../src/core/errors.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { ManualClock } from "../../../src/platform/manual-clock.ts";
import { Lifecycle } from "../../../src/platform/service.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";

const identity = { name: "ada" as NodeName, incarnation: "1" };
const term = (epoch: number, leader = "ada"): Term => {
  return { role: "scheduler", leader: leader as NodeName, incarnation: "1", epoch };
};
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** An election that goes as the test says. */
class Elected extends Lifecycle implements Leadership {
  readonly #feed = new Feed<Term | null>();
  resigned = 0;
  seen: Term | null = null;
  own: Term | null = null;

  async become(own: Term | null): Promise<void> {
    this.own = this.seen = own;
    this.#feed.push(own);
    await turn();
  }

  current(): Term | null {
    return this.seen;
  }

  held(): Term | null {
    return this.own;
  }

  require(): Term {
    if (this.own) return this.own;
    throw new BatonError("NOT_LEADER", "no");
  }

  silence(): null {
    return null;
  }

  changes(signal: AbortSignal): AsyncIterable<Term | null> {
    return this.#feed.follow(signal, this.own ? [this.own] : []);
  }

  async resign(): Promise<void> {
    this.resigned++;
    await this.become(null);
  }

  protected onStart(): void {}

  protected async onStop(): Promise<void> {
    if (this.own) await this.become(null);
  }
}

/** A gate that each question of waits for the test. */
class Gate {
  readonly asked: { readonly epoch: number; readonly signal: AbortSignal; open(): void; refuse(): void }[] =
    [];
  readonly ask: LeaderGate = ({ epoch }, signal) =>
    new Promise((resolve, reject) =>
      this.asked.push({ epoch, signal, open: resolve, refuse: () => reject(new Error("no")) }),
    );
}

async function world() {
  const elector = new Elected();
  const gate = new Gate();
  const leadership = new GatedLeadership({ elector, identity, gate: gate.ask });
  const heard: (number | null)[] = [];
  const over = new AbortController();
  const listening = (async () => {
    for await (const change of leadership.changes(over.signal)) heard.push(change?.epoch ?? null);
  })();
  await leadership.start();
  return {
    elector,
    gate,
    leadership,
    heard,
    async [Symbol.asyncDispose]() {
      await leadership.stop();
      over.abort();
      await listening;
    },
  };
}

describe("GatedLeadership", () => {
  it("holds no term and lets no duty begin before its gate is open", async () => {
    await using it = await world();
    const begun: number[] = [];
    const duties = new LeaderDuties({
      leadership: it.leadership,
      duties: { note: async ({ epoch }) => void begun.push(epoch) },
      clock: new ManualClock(),
    });
    await using _ = duties;
    await duties.start();
    await it.elector.become(term(7));
    assert.deepEqual([it.leadership.held(), it.leadership.current(), begun, it.heard], [null, null, [], []]);
    assert.throws(() => it.leadership.require(), { code: "NOT_LEADER", message: /about to lead/ });

    it.gate.asked[0]!.open();
    await turn();
    assert.equal(it.leadership.held()?.epoch, 7);
    assert.equal(it.leadership.current()?.epoch, 7);
    assert.equal(it.leadership.require().epoch, 7);
    assert.deepEqual([begun, it.heard], [[7], [7]]);
  });

  it("does not begin a term that ended before its gate was open, and asks anew for the next", async () => {
    await using it = await world();
    await it.elector.become(term(7));
    await it.elector.become(null);
    assert.equal(it.gate.asked[0]!.signal.aborted, true);
    await it.elector.become(term(8));
    it.gate.asked[0]!.open();
    await turn();
    assert.equal(it.leadership.held(), null, "that was the answer for another term");
    it.gate.asked[1]!.open();
    await turn();
    assert.deepEqual([it.leadership.held()?.epoch, it.heard], [8, [8]]);
    await it.elector.become(null);
    assert.deepEqual([it.leadership.held(), it.heard], [null, [8, null]]);
  });

  it("gives the term up when its gate refuses", async () => {
    await using it = await world();
    await it.elector.become(term(7));
    it.gate.asked[0]!.refuse();
    await turn();
    assert.deepEqual([it.elector.resigned, it.leadership.held(), it.heard], [1, null, []]);
  });

  it("sees others lead as its election does", async () => {
    await using it = await world();
    it.elector.seen = term(9, "bob");
    assert.equal(it.leadership.current()?.leader, "bob");
  });

  it("tells of the end when it is stopped", async () => {
    await using it = await world();
    await it.elector.become(term(7));
    it.gate.asked[0]!.open();
    await turn();
    await it.leadership.stop();
    await turn();
    assert.deepEqual(it.heard, [7, null]);
  });
});

lifecycleStress("GatedLeadership", async () => {
  const elector = new Elected();
  return {
    service: new GatedLeadership({ elector, identity, gate: async () => {} }),
    works: async (service) => {
      await elector.become(term(1));
      await turn();
      assert.equal(service.held()?.epoch, 1);
    },
  };
});

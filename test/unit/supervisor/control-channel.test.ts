import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { TokenRequest } from "../../../src/access/token-service.ts";
import type { NodeServices } from "../../../src/api/node-services.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { ControlChannel, type SupervisorConnection } from "../../../src/supervisor/control-channel.ts";
import type { FromController } from "../../../src/supervisor/messages.ts";

const term = (epoch: number, leader = "ada"): Term => {
  return { role: "scheduler", leader: leader as NodeName, incarnation: "1", epoch };
};

class FakeLine implements SupervisorConnection {
  readonly sent: FromController[] = [];
  readonly #listeners: ((message: unknown) => void)[] = [];

  send(message: FromController): void {
    this.sent.push(message);
  }

  receive(listener: (message: unknown) => void): void {
    this.#listeners.push(listener);
  }

  say(message: unknown): void {
    for (const listener of this.#listeners) listener(message);
  }
}

function world() {
  const clock = new ManualClock();
  const line = new FakeLine();
  return { clock, line, control: new ControlChannel({ clock }, { line, patienceMs: 5_000 }) };
}

describe("the question whether to lead", () => {
  const signal = new AbortController().signal;

  it("is answered by the word that the agent is off, for this very epoch", async () => {
    const { clock, line, control } = world();
    let open = false;
    const asking = control.beforeLeading(term(7), signal);
    void asking.then(() => (open = true));
    assert.deepEqual(line.sent, [{ baton: "may_lead", epoch: 7 }]);
    for (const other of [{ baton: "agent_off", epoch: 6 }, { epoch: 7 }, "agent_off", null]) line.say(other);
    await clock.advance(100);
    assert.equal(open, false);
    line.say({ baton: "agent_off", epoch: 7, ended: ["ada-worker"] });
    assert.deepEqual(await asking, ["ada-worker"], "with who was ended for it");
    assert.equal(clock.waiting, 0);
  });

  it("is a no when nobody answers in time", async () => {
    const { clock, control } = world();
    const refused = assert.rejects(control.beforeLeading(term(7), signal), { code: "DEADLINE" });
    await clock.advance(5_000);
    await refused;
  });

  it("is not waited for any longer when the term is over", async () => {
    const { clock, control } = world();
    const over = new AbortController();
    const asking = control.beforeLeading(term(7), over.signal);
    over.abort();
    await asking;
    assert.equal(clock.waiting, 0);
  });
});

describe("where a controller stands", () => {
  it("is told at first and whenever it changes; its own term is not another's", async () => {
    const { clock, line, control } = world();
    let held: Term | null = null;
    let current: Term | null = null;
    let draining = false;
    const services = {
      identity: { name: "ada" as NodeName, incarnation: "1" },
      leadership: { held: () => held, current: () => current },
      health: {
        get draining() {
          return draining;
        },
      },
    } as NodeServices;
    const over = new AbortController();
    const following = control.follow("http://a", services, over.signal);
    await clock.advance(1_000);
    current = term(3, "bob");
    await clock.advance(1_000);
    held = current = term(4);
    await clock.advance(1_000);
    held = null; // in doubt of its term, and nobody else has taken it
    await clock.advance(1_000);
    draining = true;
    await clock.advance(1_000);
    over.abort();
    await following;
    assert.deepEqual(line.sent, [
      { baton: "started", url: "http://a" },
      { baton: "standing", role: "STANDBY", epoch: null, leader: null },
      { baton: "standing", role: "STANDBY", epoch: 3, leader: "bob" },
      { baton: "standing", role: "LEADER", epoch: 4, leader: null },
      { baton: "standing", role: "STANDBY", epoch: 4, leader: null },
      { baton: "standing", role: "DRAINING", epoch: 4, leader: null },
    ]);
  });
});

describe("the agent's token", () => {
  it("counts before the agent is wanted, for an hour more and more, and ends when the agent is gone for good", async () => {
    const clock = new ManualClock();
    const line = new FakeLine();
    const control = new ControlChannel({ clock }, { line, patienceMs: 5_000, agentToken: "baton_agents" });
    const done: string[] = [];
    let broken = true;
    const tokens = {
      adopt: async (text: string, request: TokenRequest) => {
        if (broken) throw new Error("the store is silent");
        done.push(`${request.name} ${request.permission} ${request.by} ${request.expiresInMs} ${text}`);
      },
      release: async (text: string) => void done.push(`released ${text}`),
    };
    const services = {
      identity: { name: "ada" as NodeName, incarnation: "1" },
      leadership: { held: () => null, current: () => term(3, "bob") },
      health: { draining: false },
      access: { tokens },
    } as unknown as NodeServices;
    const over = new AbortController();
    const following = control.follow("http://a", services, over.signal);
    await clock.advance(1_000);
    assert.deepEqual(done, []);
    assert.equal(line.sent.length, 2, "where it stands is told all the same");
    broken = false;
    await clock.advance(100);
    const held = "ada-worker operate node-controller:ada 3600000 baton_agents";
    assert.deepEqual(done, [held]);
    await clock.advance(3_600_000);
    assert.deepEqual(done, [held, held, held, held, held]);
    line.say({ baton: "retire" });
    await clock.advance(1_000);
    assert.equal(done.at(-1), "released baton_agents");
    assert.deepEqual(line.sent.at(-1), { baton: "retired" });
    await clock.advance(3_600_000);
    assert.equal(done.length, 6, "and is not taken up again");
    over.abort();
    await following;
  });
});

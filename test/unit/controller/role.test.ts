import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../support/fast-check.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import { permits, STANDBY_STATE, step } from "../../../src/core/leadership/role.ts";
import type { RoleAction, RoleEvent, RoleState } from "../../../src/core/leadership/role.ts";
import type { Term } from "../../../src/core/leadership/term.ts";

const termOf = (epoch: number): Term => ({
  role: "scheduler",
  leader: "a" as NodeName,
  incarnation: "one",
  epoch,
});
const acquired = (epoch: number): RoleEvent => ({ event: "acquired", term: termOf(epoch) });

function follow(...events: RoleEvent[]): { standing: RoleState; actions: RoleAction[] } {
  let standing = STANDBY_STATE;
  const actions: RoleAction[] = [];
  for (const event of events) {
    const next = step(standing, event);
    standing = next.standing;
    actions.push(...next.actions);
  }
  return { standing, actions };
}

describe("the role of a node", () => {
  it("becomes LEADER with a term, and the agent is off before the first write", () => {
    const { standing, actions } = follow(acquired(3));
    assert.deepEqual(standing, { role: "LEADER", term: termOf(3) });
    assert.deepEqual(actions, ["stop_agent", "open_writes"]);
  });

  it("becomes STANDBY when the term is lost: no write first, the agent after", () => {
    const { standing, actions } = follow(acquired(3), { event: "lost" });
    assert.deepEqual(standing, STANDBY_STATE);
    assert.deepEqual(actions.slice(2), ["close_writes", "start_agent"]);
  });

  it("keeps the term while it drains, until the grace is over", () => {
    const draining = follow(acquired(3), { event: "drain" });
    assert.deepEqual(draining.standing, { role: "DRAINING", term: termOf(3) });
    assert.deepEqual(draining.actions.slice(2), ["stop_leasing"]);
    const down = follow(acquired(3), { event: "drain" }, { event: "stepped_down" });
    assert.deepEqual(down.standing, { role: "DRAINING", term: null });
    assert.deepEqual(down.actions.slice(3), ["close_writes", "release_lock"]);
    const back = step(down.standing, { event: "resume" });
    assert.deepEqual(back, { standing: STANDBY_STATE, actions: ["start_agent"] });
  });

  it("does not lead with a term that comes while it drains, and gives it back", () => {
    const { standing, actions } = follow({ event: "drain" }, acquired(4));
    assert.deepEqual([standing, actions], [{ role: "DRAINING", term: null }, ["release_lock"]]);
  });

  it("permits new work to a leader, and the end of work to one that drains", () => {
    const leading: RoleState = { role: "LEADER", term: termOf(1) };
    const draining: RoleState = { role: "DRAINING", term: termOf(1) };
    const drained: RoleState = { role: "DRAINING", term: null };
    assert.deepEqual(
      [leading, draining, drained, STANDBY_STATE].map((each) => [
        permits(each, "lead"),
        permits(each, "finish"),
      ]),
      [
        [true, true],
        [false, true],
        [false, false],
        [false, false],
      ],
    );
  });

  it("opens writes and closes them in turn, whatever happens in whatever order", () => {
    const events = fc.array(
      fc.oneof(
        fc.integer({ min: 1, max: 5 }).map(acquired),
        fc.constantFrom<RoleEvent>(
          { event: "lost" },
          { event: "drain" },
          { event: "stepped_down" },
          { event: "resume" },
        ),
      ),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(events, (history) => {
        let standing = STANDBY_STATE;
        let open = false;
        let agent = true;
        for (const event of history) {
          const next = step(standing, event);
          for (const action of next.actions) {
            if (action === "stop_agent") agent = false;
            if (action === "start_agent") agent = true;
            if (action === "open_writes") {
              assert.equal(agent, false, "a write was possible while the agent ran");
              open = true;
            }
            if (action === "close_writes") open = false;
          }
          standing = next.standing;
          assert.equal(open, standing.term !== null);
          assert.ok(!open || !agent, "leads and works at once");
          assert.equal(permits(standing, "lead"), standing.role === "LEADER");
        }
      }),
    );
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { WorkerHeartbeat } from "../../../../src/channels/messages.ts";
import { queues } from "../../../../src/channels/channel-names.ts";
import type { NodeName } from "../../../../src/core/ids.ts";
import { WorkerDemand } from "../../../../src/push/dispatch/worker-demand.ts";

const MAIL = queues.dispatch("mail");

function heartbeat(incarnation: string, fields: Partial<WorkerHeartbeat> = {}): WorkerHeartbeat {
  return {
    node: "worker" as NodeName,
    incarnation,
    status: "active",
    queues: null,
    exceptQueues: [],
    tasks: ["work"],
    running: 0,
    runningMax: 10,
    wants: 5,
    taken: {},
    at: "2026-01-01T00:00:00.000Z",
    ...fields,
  };
}

const wanted = (demand: WorkerDemand): number[] => demand.groups().map(({ wants }) => wants);
const outstanding = (demand: WorkerDemand): number[] => demand.outstanding.map(({ jobs }) => jobs);

describe("what a leader knows of its workers", () => {
  it("is what each said last", () => {
    const demand = new WorkerDemand();
    assert.equal(demand.heard(heartbeat("1"), 0), true);
    assert.equal(demand.heard(heartbeat("1", { wants: 3 }), 1), false);
    demand.heard(heartbeat("2", { wants: 4 }), 1);
    demand.heard(heartbeat("3", { tasks: ["other"], wants: 1 }), 1);
    assert.deepEqual(wanted(demand), [7, 1]);
  });

  it("ends when they drain, are silent for too long, or are dead", () => {
    const demand = new WorkerDemand();
    for (const life of ["drains", "silent", "dead", "well"]) demand.heard(heartbeat(life), 0);
    for (const life of ["dead", "well"]) demand.heard(heartbeat(life), 100);
    demand.heard(heartbeat("drains", { status: "draining", wants: 0 }), 100);
    demand.forget(50, (incarnation) => incarnation === "dead");
    assert.deepEqual(wanted(demand), [5]);
  });

  it("counts what they took since it was first heard of, also when a heartbeat was lost", () => {
    const demand = new WorkerDemand();
    demand.heard(heartbeat("1", { taken: { [MAIL]: 100 } }), 0);
    demand.sent(MAIL, 10);
    assert.deepEqual(outstanding(demand), [10]);
    demand.heard(heartbeat("1", { taken: { [MAIL]: 104 } }), 1);
    assert.deepEqual(outstanding(demand), [6]);
    demand.heard(heartbeat("1", { taken: { [MAIL]: 109 } }), 2);
    assert.deepEqual(outstanding(demand), [1]);
    demand.heard(heartbeat("1", { taken: { [MAIL]: 112 } }), 3);
    assert.deepEqual(outstanding(demand), [], "never less than nothing");
  });

  it("is put right by what the store counts", () => {
    const demand = new WorkerDemand();
    demand.sent(MAIL, 10);
    demand.sent(queues.dispatch("mail", "rare"), 30);
    demand.sent(queues.dispatch("other"), 7);
    demand.recount(
      new Map([
        ["mail", 20],
        ["unheard-of", 4],
      ]),
    );
    assert.deepEqual(demand.outstanding, [
      { queue: "mail", task: null, jobs: 5 },
      { queue: "mail", task: "rare", jobs: 15 },
      { queue: "unheard-of", task: null, jobs: 4 },
    ]);
    demand.recount(new Map([["mail", 25]]));
    assert.deepEqual(outstanding(demand), [10, 15]);
  });
});

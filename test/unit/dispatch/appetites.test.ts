import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { WorkerHeartbeat } from "../../../src/channels/messages.ts";
import { queues } from "../../../src/channels/names.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import { Appetites } from "../../../src/dispatch/appetites.ts";

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

const wanted = (appetites: Appetites): number[] => appetites.groups().map(({ wants }) => wants);
const outstanding = (appetites: Appetites): number[] => appetites.outstanding.map(({ jobs }) => jobs);

describe("what a leader knows of its workers", () => {
  it("is what each said last", () => {
    const appetites = new Appetites();
    assert.equal(appetites.heard(heartbeat("1"), 0), true);
    assert.equal(appetites.heard(heartbeat("1", { wants: 3 }), 1), false);
    appetites.heard(heartbeat("2", { wants: 4 }), 1);
    appetites.heard(heartbeat("3", { tasks: ["other"], wants: 1 }), 1);
    assert.deepEqual(wanted(appetites), [7, 1]);
  });

  it("ends when they drain, are silent for too long, or are dead", () => {
    const appetites = new Appetites();
    for (const life of ["drains", "silent", "dead", "well"]) appetites.heard(heartbeat(life), 0);
    for (const life of ["dead", "well"]) appetites.heard(heartbeat(life), 100);
    appetites.heard(heartbeat("drains", { status: "draining", wants: 0 }), 100);
    appetites.forget(50, (incarnation) => incarnation === "dead");
    assert.deepEqual(wanted(appetites), [5]);
  });

  it("counts what they took since it was first heard of, also when a heartbeat was lost", () => {
    const appetites = new Appetites();
    appetites.heard(heartbeat("1", { taken: { [MAIL]: 100 } }), 0);
    appetites.sent(MAIL, 10);
    assert.deepEqual(outstanding(appetites), [10]);
    appetites.heard(heartbeat("1", { taken: { [MAIL]: 104 } }), 1);
    assert.deepEqual(outstanding(appetites), [6]);
    appetites.heard(heartbeat("1", { taken: { [MAIL]: 109 } }), 2);
    assert.deepEqual(outstanding(appetites), [1]);
    appetites.heard(heartbeat("1", { taken: { [MAIL]: 112 } }), 3);
    assert.deepEqual(outstanding(appetites), [], "never less than nothing");
  });

  it("is put right by what the store counts", () => {
    const appetites = new Appetites();
    appetites.sent(MAIL, 10);
    appetites.sent(queues.dispatch("mail", "rare"), 30);
    appetites.sent(queues.dispatch("other"), 7);
    appetites.recount(
      new Map([
        ["mail", 20],
        ["unheard-of", 4],
      ]),
    );
    assert.deepEqual(appetites.outstanding, [
      { queue: "mail", task: null, jobs: 5 },
      { queue: "mail", task: "rare", jobs: 15 },
      { queue: "unheard-of", task: null, jobs: 4 },
    ]);
    appetites.recount(new Map([["mail", 25]]));
    assert.deepEqual(outstanding(appetites), [10, 15]);
  });
});

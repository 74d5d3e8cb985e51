import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { clusterView, type ClusterViewOptions } from "../../../src/observe/cluster-view.ts";
import { deadNodeRecovery } from "../../../src/jobs/recover/dead-node-recovery.ts";
import { trafficOf } from "../../../src/observe/traffic.ts";
import type { Membership } from "../../../src/leadership/coordination.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { silentLog } from "../../../src/platform/log.ts";
import { fakePlatform } from "../../support/fake-platform.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { NodeEvents } from "../../../src/platform/node-events.ts";
import { observeNode } from "../../../src/observe/observe-node.ts";
import { memoryStore } from "../../support/memory-store.ts";
import { recordingLog } from "../../support/node-log.ts";
import { nodeHere, temporaryDirectory } from "../../support/node-here.ts";
import { column, columns } from "../../support/columns.ts";

const identity = { name: "node-a" as NodeName, incarnation: "1" };

async function observed() {
  const clock = new ManualClock();
  const store = memoryStore({ clock });
  const events = new NodeEvents(silentLog);
  const traffic = trafficOf(clock);
  const counted: string[] = [];
  const { journal, services } = observeNode(events, {
    identity,
    version: "1.2.3",
    store,
    membership: { nodes: () => [] },
    clock,
    log: silentLog,
    traffic,
    news: {
      submitted: (jobs) => void counted.push(`${jobs.length} in the feed`),
      changed: (id, status) => void counted.push(`${id} ${status}`),
    },
    metrics: {
      jobs: {
        submitted: (jobs) => void counted.push(`${jobs.length} submitted`),
        submitFailed: () => void counted.push("failed to submit"),
        recovered: ({ status }, quarantined) => void counted.push(`${status}, quarantined: ${quarantined}`),
      },
      leaders: { changed: ({ is }) => void counted.push(`term ${is}`), refused: () => {} },
      node: { takenOver: ({ reason }) => void counted.push(`taken over: ${reason}`) },
    },
  });
  for (const service of services) await service.start();
  const entries = async () => {
    await journal.flush();
    const all = await journal.list({ limit: 100 });
    return all.toReversed().map(({ kind, subject, detail }) => ({ kind, subject, detail }));
  };
  const kinds = async () => (await entries()).map(({ kind, subject }) => [kind, subject]);
  return { clock, store, events, traffic, counted, entries, kinds, services };
}

describe("the events of a node", () => {
  it("reach every listener, also after one that throws", () => {
    const log = recordingLog();
    const events = new NodeEvents(log);
    const seen: unknown[] = [];
    events.emit("node.removed", identity.name);
    events.on("node.removed", (name) => seen.push(name));
    events.on("node.removed", () => {
      throw new Error("broken");
    });
    events.on("node.removed", (name) => seen.push(`${name} again`));
    events.emit("node.removed", identity.name);
    assert.deepEqual(seen, ["node-a", "node-a again"]);
    assert.equal(log.about("a listener of a node event failed"), 1);
  });
});

describe("the journal of a node", () => {
  it("has its changes of status, each once", async () => {
    const { events, kinds, entries } = await observed();
    for (const status of ["joining", "active", "active", "draining", "active", "draining", "left", "left"])
      events.emit("node.status", status);
    assert.deepEqual(await kinds(), [
      ["node.joined", "node-a"],
      ["node.draining", "node-a"],
      ["node.resumed", "node-a"],
      ["node.draining", "node-a"],
      ["node.left", "node-a"],
    ]);
    assert.deepEqual((await entries())[0]!.detail, { incarnation: "1", version: "1.2.3" });
  });

  it("has a node that was removed by hand", async () => {
    const { events, entries } = await observed();
    const membership = { remove: async (name: string) => name === "node-b" };
    const options = { coordination: { membership } } as unknown as ClusterViewOptions;
    const view = clusterView(fakePlatform({ events }), options);
    assert.equal(await view.remove("node-b" as NodeName), true);
    assert.equal(await view.remove("node-c" as NodeName), false);
    const detail = { reason: "it was removed by hand" };
    assert.deepEqual(await entries(), [{ kind: "node.left", subject: "node-b", detail }]);
  });

  it("has the dead, when their work was taken back", async () => {
    const { events, entries, clock } = await observed();
    const term: Term = { role: "scheduler", leader: identity.name, incarnation: "1", epoch: 4 };
    const dead = [[{ name: "node-b", incarnation: "9" }]];
    const nodes = () => [];
    const membership = { nodes, findDead: async () => dead.shift() ?? [], markRecovered: async () => {} };
    const ending = new AbortController();
    const platform = { clock, log: silentLog, events };
    const reaper = { recover: async () => [] };
    const duty = deadNodeRecovery(platform, membership as unknown as Membership, reaper)(term, ending.signal);
    await clock.advance(1_000);
    ending.abort();
    await duty;
    const detail = { incarnation: "9", leader_epoch: 4 };
    assert.deepEqual(await entries(), [{ kind: "node.dead", subject: "node-b", detail }]);
  });

  it("has drains and handoffs", async () => {
    const { events, entries, counted } = await observed();
    events.emit("node.drained", { interrupted: 2 });
    const taken = { assignment: 7, from: "node-b" as NodeName, ownerEpoch: 3, jobs: 5, reason: "shutdown" };
    events.emit("assignment.taken_over", taken);
    assert.deepEqual(columns(await entries(), "kind", "detail"), [
      ["node.drained", { interrupted: 2 }],
      [
        "handoff",
        { assignment: 7, from: "node-b", to: "node-a", jobs: 5, owner_epoch: 3, reason: "shutdown" },
      ],
    ]);
    assert.deepEqual(counted, ["taken over: shutdown"]);
  });

  it("writes what it has before it stops", async () => {
    const { events, services, store } = await observed();
    for (let n = 0; n < 10; n++)
      events.emit("write.refused", { write: "jobs.purge", carried: 1, current: 2, job: null });
    for (const service of services.toReversed()) await service.stop();
    const entries = await store.journal.list({ limit: 100 });
    const count = entries.reduce((sum, { detail }) => sum + (detail["count"] as number), 0);
    assert.deepEqual([entries.length, count], [4, 10]);
  });
});

describe("rates and metrics of jobs", () => {
  it("count what was stored, fired, finished and recovered", async () => {
    const { events, traffic, counted, clock } = await observed();
    const [id, task, queue] = ["node-a-1" as never, "work", "default"];
    const jobs = [{ id, task, queue }];
    events.emit("jobs.submitted", { jobs, answers: [{ id, status: "queued" }] });
    events.emit("schedule.fired", { jobs, storedHere: true });
    events.emit("schedule.fired", { jobs, storedHere: false });
    events.emit("jobs.finished", [{ queue, failed: false, jobs: 3 }]);
    events.emit("jobs.recovered", [
      { id, status: "queued", quarantined: false },
      { id, status: "failed", quarantined: true },
    ]);
    events.emit("jobs.submit_failed", new Error("no"));
    await clock.advance(1_000);
    const { submitted, finished, failed } = traffic.read();
    assert.deepEqual([submitted, finished, failed], [2, 4, 1]);
    assert.deepEqual(counted, [
      "1 submitted",
      "1 in the feed",
      "1 in the feed",
      "1 in the feed",
      "queued, quarantined: false",
      "node-a-1 queued",
      "failed, quarantined: true",
      "node-a-1 failed",
      "failed to submit",
    ]);
  });
});

describe("a node", () => {
  it("writes down its life and its terms, and finds them again", async (t) => {
    const dir = await temporaryDirectory(t);
    const settings = { STORE: "sqlite", DATA: dir };
    const first = await nodeHere(t, { settings });
    await first.services.cluster.ask(first.services.identity.name, "drain");
    const { journal } = first.services;
    const kinds = async (): Promise<string[]> =>
      (await journal.list({ limit: 100 })).map(({ kind }) => kind).toReversed();
    while (!(await kinds()).includes("node.drained")) await systemClock.sleep(10);
    await first.services.cluster.ask(first.services.identity.name, "resume");
    while (!(await kinds()).includes("node.resumed")) await systemClock.sleep(10);
    await first.stop();
    const second = await nodeHere(t, { settings });
    const entries = (await second.services.journal.list({ limit: 100 })).toReversed();
    const about = (subject: string) => entries.filter((entry) => entry.subject === subject);
    assert.deepEqual(column(about("here").slice(0, 7), "kind"), [
      "node.joined",
      "node.draining",
      "node.drained",
      "node.resumed",
      "node.draining",
      "node.drained",
      "node.left",
    ]);
    assert.deepEqual(
      about("scheduler")
        .slice(0, 4)
        .map(({ kind, detail }) => [kind, detail["epoch"], detail["reason"] ?? null]),
      [
        ["term.started", 1, null],
        ["term.ended", 1, "stopped"],
        ["term.started", 2, null],
        ["term.ended", 2, "stopped"],
      ],
    );
  });
});

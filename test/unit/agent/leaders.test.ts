import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ClusterConnection, type ClusterAnswer } from "../../../src/client/connection/cluster-connection.ts";
import { HttpConnection } from "../../../src/client/connection/connection.ts";
import type { Task } from "../../../src/jobs/tasks/task.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { SYSTEM } from "../../../src/platform/platform.ts";
import { FakeControllers } from "../../support/fake-controller.ts";
import { atEnd, type Scope } from "../../support/node-cleanup.ts";
import { eventually } from "../../support/wait.ts";
import { startAgent } from "./world.ts";

const quick: Task = { name: "quick", run: () => "done" };

/** Ends when it is let go, and not sooner. */
function gated(talks = true) {
  let open: () => void = () => {};
  const gate = new Promise<void>((resolve) => (open = resolve));
  let begun = 0;
  const task: Task = {
    name: "gated",
    async run(_payload, { log }) {
      begun++;
      await gate;
      if (talks) log("through");
      return "done";
    },
  };
  return { task, open: () => open(), begun: () => begun };
}

function connection(t: Scope, urls: readonly string[]): ClusterConnection {
  const connect = (url: string) => new HttpConnection(url, systemClock);
  const options = { urls, connect, discover: true, retry: true, anyRole: true };
  const leader = new ClusterConnection(SYSTEM, options);
  atEnd(t, () => leader.close());
  return leader;
}

const BEAT = "/v1/agents/heartbeat";
const { signal } = new AbortController();

function beat(leader: ClusterConnection, timeoutMs = 1_000): Promise<ClusterAnswer> {
  return leader.postToLeader(BEAT, () => "{}", { timeoutMs, signal });
}

function poll(leader: ClusterConnection): Promise<ClusterAnswer> {
  const body = JSON.stringify({ agent: "a", capabilities: ["quick"], max_tasks: 1, timeout_ms: 20_000 });
  return leader.postToLeader("/v1/leases", () => body, { timeoutMs: 25_000, signal, moves: true });
}

describe("a way to the leader", { concurrency: true }, () => {
  it("takes a call that waits along to the next leader as soon as another call has found it", async (t) => {
    const controllers = await FakeControllers.open(t, { nodes: 2 });
    const [first, second] = controllers.nodes;
    const leader = connection(t, controllers.urls);
    await beat(leader);
    controllers.instead = ({ node }) => (node === first!.name ? "silence" : null); // it hangs
    const waiting = poll(leader);
    controllers.lead(second!);
    controllers.submit("quick");
    await beat(leader);
    const { url, status } = await waiting;
    assert.deepEqual([url, status], [second!.url, 200]);
  });

  it("hears from another node that the leader has changed, and takes a call that waits along", async (t) => {
    const controllers = await FakeControllers.open(t, { nodes: 3 });
    const [first, second] = controllers.nodes;
    const leader = connection(t, [first!.url]);
    await beat(leader);
    await leader.nodes.learn();
    controllers.instead = ({ node }) => (node === first!.name ? "silence" : null); // it hangs
    const waiting = poll(leader);
    await eventually("the poll", () => controllers.calls("/v1/leases").length === 1);
    assert.equal(await leader.checkLeader(1_000, signal), "checked");
    await systemClock.sleep(50);
    assert.equal(controllers.calls("/v1/leases").length, 1, "nothing has changed, and it stays");
    controllers.lead(second!);
    controllers.submit("quick");
    assert.equal(await leader.checkLeader(1_000, signal), "checked");
    const { url, status } = await waiting;
    assert.deepEqual([url, status], [second!.url, 200]);
    await second!.close();
    await controllers.nodes[2]!.close();
    assert.equal(await leader.checkLeader(300, signal), "silent");
  });

  it("asks nobody who leads where there is but one node", async (t) => {
    const controllers = await FakeControllers.open(t, { nodes: 1 });
    const leader = connection(t, [controllers.nodes[0]!.url]);
    await beat(leader);
    assert.equal(await leader.checkLeader(1_000, signal), "alone");
    assert.equal(controllers.calls("/role").length, 0);
  });
});

describe("an agent whose leader changes", { concurrency: true }, () => {
  it("renews at the new one, and posts its logs and its result there under the new epoch", async (t) => {
    const controllers = await FakeControllers.open(t, { nodes: 3, leaseMs: 3_000 });
    const { task, open, begun } = gated();
    await startAgent(t, controllers, { tasks: [task] });
    const job = controllers.submit("gated");
    await eventually("the handler", () => begun() > 0);
    controllers.lead(controllers.nodes[1]!);
    await controllers.nodes[0]!.close();
    open();
    await controllers.until(job, "completed");
    assert.deepEqual(
      job.accepted,
      ["succeeded 1/2"],
      "one run, accepted once, under the epoch of the second leader",
    );
    assert.deepEqual([job.lines, begun()], [["through"], 1]);
  });

  it("takes a result along that a leader holds which hangs, once it has found the next", async (t) => {
    const controllers = await FakeControllers.open(t, { nodes: 2, leaseMs: 3_000 });
    const [first, second] = controllers.nodes;
    const { task, open, begun } = gated();
    await startAgent(t, controllers, { tasks: [task] });
    const job = controllers.submit("gated");
    await eventually("the handler", () => begun() > 0);
    controllers.instead = ({ node }) => (node === first!.name ? "silence" : null);
    open();
    await eventually("its lines to hang", () => controllers.calls("/v1/logs").length > 0);
    controllers.lead(second!);
    const from = systemClock.monotonic();
    await controllers.until(job, "completed");
    const tookMs = systemClock.monotonic() - from;
    assert.ok(tookMs < 4_000, `${tookMs} ms: a renewal finds the next one after 1 s, and waits 1 s`);
    assert.deepEqual([job.accepted, job.lines], [["succeeded 1/2"], ["through"]]);
  });

  const posted = (controllers: FakeControllers): unknown[] =>
    controllers
      .calls("/v1/results")
      .flatMap(({ body }) =>
        (body as unknown as { leader_epoch: number }[]).map((each) => each.leader_epoch),
      );

  it("renews before it posts when it has heard of the new one", async (t) => {
    const controllers = await FakeControllers.open(t, { nodes: 2, leaseMs: 60_000 });
    const { task, open, begun } = gated(false);
    await startAgent(t, controllers, { tasks: [task] });
    const job = controllers.submit("gated");
    await eventually("the handler", () => begun() > 0 && controllers.polls > 0);
    controllers.lead(controllers.nodes[1]!); // the one that led sends the poll away, and names the next
    const { name } = controllers.nodes[1]!;
    await eventually("the poll to move", () => controllers.calls("/v1/leases").at(-1)!.node === name);
    open();
    await controllers.until(job, "completed");
    assert.deepEqual(posted(controllers), [2]);
  });

  it("asks by a renewal whether it is the leader that has changed when a result is refused", async (t) => {
    const controllers = await FakeControllers.open(t, { nodes: 1, leaseMs: 60_000 });
    const { task, open, begun } = gated(false);
    await startAgent(t, controllers, { tasks: [task] });
    const job = controllers.submit("gated");
    await eventually("the handler", () => begun() > 0 && controllers.polls > 0);
    controllers.lead(controllers.nodes[0]!); // the same node leads again, and nobody tells
    open();
    await controllers.until(job, "completed");
    assert.deepEqual([posted(controllers), job.accepted], [[1, 2], ["succeeded 1/2"]]);
  });

  it("keeps a finished result while nobody leads, and takes no more jobs meanwhile", async (t) => {
    const controllers = await FakeControllers.open(t, { nodes: 2, leaseMs: 10_000 });
    const { task, open, begun } = gated();
    const { log } = await startAgent(t, controllers, { tasks: [task] });
    const job = controllers.submit("gated");
    await eventually("the handler", () => begun() > 0);
    controllers.lead(null);
    open();
    await eventually("some tries", () => controllers.asked.length > 20);
    assert.deepEqual(job.accepted, []);
    assert.equal(log.about("no node leads at the moment"), 1, "told once, and not with every try");
    controllers.lead(controllers.nodes[1]!);
    await controllers.until(job, "completed");
    assert.deepEqual(job.accepted, ["succeeded 1/2"]);
    await controllers.until(controllers.submit("gated"), "completed");
    assert.equal(log.about("there is a leader again"), 1);
  });

  it("repeats a result whose answer was lost, and it counts once", async (t) => {
    const controllers = await FakeControllers.open(t, { nodes: 1 });
    let lost = 0;
    controllers.instead = (asked) => {
      if (asked.path !== "/v1/results" || lost > 0) return null;
      lost++;
      void controllers.answer(controllers.nodes[0]!, asked, new Promise(() => {}));
      return { status: 503, body: { error: "STORE_UNAVAILABLE", message: "who knows" } };
    };
    const { log } = await startAgent(t, controllers, { tasks: [quick] });
    const job = controllers.submit("quick");
    await eventually("the repetition", () => controllers.calls("/v1/results").length === 2);
    assert.deepEqual([job.status, job.accepted, log.about("refused")], ["completed", ["succeeded 1/1"], 0]);
  });

  it("names the request whose answer was lost to whoever leads next, once, and none that was refused", async (t) => {
    const controllers = await FakeControllers.open(t, { nodes: 2 });
    const [first, second] = controllers.nodes;
    const asked = () =>
      controllers.calls("/v1/leases").map(({ body }) => [body["request_id"], body["unanswered"]] as const);
    await startAgent(t, controllers, { tasks: [quick] });
    await eventually("its poll", () => controllers.polls > 0);
    controllers.lead(second!); // sends the poll away
    await eventually(
      "its poll",
      () => controllers.polls > 0 && controllers.calls("/v1/leases").at(-1)!.node === second!.name,
    );
    const polls = asked();
    assert.deepEqual(new Set(polls.map(([, unanswered]) => unanswered)), new Set([undefined]));
    const lost = polls.at(-1)![0];
    controllers.lead(first!);
    await second!.close(); // with the answer
    await controllers.until(controllers.submit("quick"), "completed");
    await eventually("another poll", () => asked().at(-1)![1] === undefined);
    const named = asked().flatMap(([, unanswered]) => (unanswered === undefined ? [] : [unanswered]));
    assert.deepEqual(named, [[lost]]);
    assert.equal(new Set(asked().map(([id]) => id)).size, asked().length, "each has a name of its own");
  });

  it("starts before any node does, says so, and works once there is one", async (t) => {
    const controllers = await FakeControllers.open(t, { nodes: 1 });
    const [node] = controllers.nodes;
    await node!.close();
    const { log } = await startAgent(t, controllers, { tasks: [quick] });
    await eventually("the warning", () => log.about("no node can be reached") > 0);
    await node!.listen();
    await controllers.until(controllers.submit("quick"), "completed");
  });

  it("backs off from a leader that refuses leases, and asks no faster than it may when polls end early", async (t) => {
    const controllers = await FakeControllers.open(t, { nodes: 1 });
    controllers.instead = ({ path }) => (path === "/v1/leases" ? { status: 204, body: null } : null);
    await startAgent(t, controllers, { tasks: [quick] });
    const tookMs = async (polls: number): Promise<number> => {
      const until = controllers.calls("/v1/leases").length + polls;
      const from = systemClock.monotonic();
      await eventually("more polls", () => controllers.calls("/v1/leases").length >= until);
      return systemClock.monotonic() - from;
    };
    await tookMs(1);
    assert.ok((await tookMs(3)) >= 500, "polls that ended at once");
    controllers.instead = ({ path }) =>
      path === "/v1/leases" ? { status: 422, body: { error: "BAD_REQUEST", message: "no" } } : null;
    assert.ok((await tookMs(6)) >= 500, "polls that were refused");
  });
});

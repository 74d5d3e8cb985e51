/** A client of three real nodes on one database, of which those that it talks to are killed. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import {
  BatonClient,
  BatonClientError,
  type ClusterEvent,
  type FollowEvent,
} from "../../../../src/client/baton-client.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { QUICK, TestCluster } from "../../../support/cluster.ts";
import { atEnd, suiteScope, type Scope } from "../../../support/node-cleanup.ts";
import type { NodeProcess } from "../../../support/process-node.ts";
import { TcpProxy } from "../../../support/tcp-proxy.ts";
import { eventually } from "../../../support/wait.ts";

/** Told of one node only; of the others it has to learn. */
async function clientOf(t: Scope, node: NodeProcess): Promise<BatonClient> {
  const client = new BatonClient({ urls: node.url, timeoutMs: 20_000 });
  atEnd(t, () => client.close());
  await eventually("it knows the others", async () => {
    await client.health();
    return client.nodes.length > 1;
  });
  return client;
}

function numbersOf(events: readonly FollowEvent[]): number[] {
  return events.flatMap((event) => (event.event === "log" ? [Number(event.line.message)] : []));
}

function upTo(n: number): number[] {
  return Array.from({ length: n }, (_, at) => at + 1);
}

async function collect<T>(events: AsyncIterable<T>, into: T[]): Promise<void> {
  for await (const event of events) into.push(event);
}

describe("a client whose node is killed", () => {
  const suite = suiteScope();
  let cluster: TestCluster;

  before(async () => {
    // A death is noticed by its connection; leases may be such that a busy machine keeps them.
    const leases = { LEADER__LEASE: "6s", LEADER__MARGIN: "1500ms", WORKER__LEASE: "6s" };
    const settings = { ...QUICK, ...leases, NODE__DEAD_AFTER: "6s" };
    cluster = await TestCluster.open(suite, { settings });
    await cluster.startWithQueues("ada", "bob", "cyd");
  });

  it("makes no second job of a submit whose answer is lost, and says so where it must not repeat", async (t) => {
    const [ada, bob] = [cluster.node("ada"), cluster.node("bob")];
    const proxy = await TcpProxy.start(ada.url);
    atEnd(t, () => proxy.stop());
    const through = (): BatonClient => {
      const client = new BatonClient({ urls: [proxy.through(ada.url), bob.url], discover: false });
      atEnd(t, () => client.close());
      return client;
    };
    /** What the request has made once it is stored, of which no answer comes back. */
    const lost = async <T>(task: string, work: (client: BatonClient) => Promise<T>) => {
      await proxy.freeze("down");
      const answered = work(through()).catch((error: unknown) => error as BatonClientError);
      const stored = async () => {
        const jobs = await bob.allJobs({ task });
        return jobs.length > 0 ? jobs.map((job) => job.job_id) : null;
      };
      const before = await eventually("it is stored", stored);
      await proxy.refuse();
      const answer = await answered;
      await proxy.forward();
      return { answer, before, after: (await stored())! };
    };
    const one = await lost("tick", (client) => client.submit({ task: "tick" }));
    assert.deepEqual((one.answer as { job_id: string }).job_id, one.before[0]);
    assert.deepEqual(one.after, one.before);
    const jobs = upTo(5).map(() => ({ task: "blob", payload: { letter: "a", length: 1 } }));
    const many = await lost("blob", (client) => client.submitMany(jobs));
    const ids = (many.answer as { job_id: string }[]).map(({ job_id }) => job_id);
    assert.deepEqual([ids.sort(), many.after.sort()], [many.before.sort(), many.before]);
    const called = await lost("deaf", (client) => client.call("deaf"));
    assert.ok(called.answer instanceof BatonClientError);
    assert.deepEqual([called.answer.code, called.answer.outcome], ["OUTCOME_UNKNOWN", "unknown"]);
    assert.deepEqual(called.after, called.before);
    await bob.client.cancel(called.before[0]!);
  });

  it("goes on with logs, events and a wait at another node: no line and no event lost or doubled", async (t) => {
    const { name: leader } = await cluster.leader();
    const [inUse, worker] = [...cluster.nodes.keys()].filter((each) => each !== leader) as [string, string];
    const client = await clientOf(t, cluster.node(inUse));
    const stop = new AbortController();
    atEnd(t, () => stop.abort());
    const events: ClusterEvent[] = [];
    void collect(client.events({ signal: stop.signal }), events);
    await eventually("hello", async () => events.length > 0);
    await systemClock.sleep(300); // until everybody knows that somebody reads

    const job = { task: "chatter", queue: worker, payload: { lines: 100, everyMs: 30 } };
    const { job_id } = await client.submit(job);
    const logs: FollowEvent[] = [];
    const following = collect(client.logs(job_id, { follow: true }), logs);
    const waiting = client.wait(job_id, { timeoutMs: 30_000 });
    await eventually("some lines", async () => numbersOf(logs).length >= 20);
    assert.equal(client.node, cluster.node(inUse).url);
    await cluster.kill(inUse);
    const { job: done, result } = await waiting;
    await following;
    assert.deepEqual([done.status, result, done.attempts], ["completed", 100, 1]);
    assert.deepEqual(numbersOf(logs), upTo(100));
    assert.equal(logs.at(-1)!.event, "end");

    const told = () =>
      events.flatMap(({ event, data }) => ("job_id" in data && data.job_id === job_id ? [event] : []));
    await eventually("its end among the events", async () => told().includes("job.completed"));
    const hellos = events.flatMap(({ event, data }) => (event === "hello" ? [data.node_id] : []));
    assert.deepEqual([hellos[0], hellos.length > 1], [inUse, true]);
    const ids = events.flatMap(({ id }) => id ?? []);
    const [first] = ids;
    const [epoch, n] = first!.split("-").map(Number) as [number, number];
    assert.deepEqual(
      ids,
      ids.map((_, at) => `${epoch}-${n + at}`),
    );
    assert.ok(!events.some(({ event }) => event === "gap"), "the leader lives, and nothing was missed");
    // Of several nodes, one may be heard a moment sooner.
    for (const event of ["job.submitted", "job.started", "job.completed"])
      assert.equal(told().filter((each) => each === event).length, 1, event);
  });
});

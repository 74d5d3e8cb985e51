/** 9.4: an old leader cannot commit results after it has lost leadership (S03, S63). */

import assert from "node:assert/strict";
import { it } from "node:test";
import { systemClock } from "../../src/platform/clock.ts";
import type { ConformanceCluster, Led } from "../support/conformance-cluster.ts";
import { resultOf, type ControllerCalls, type Leased, type Told } from "../support/controller-calls.ts";
import { roleOf } from "../support/cluster.ts";
import { eventually } from "../support/wait.ts";
import type { Suite } from "./suite.ts";

/** Time for what was sent to reach the socket of a process that stands still. */
const SENT_MS = 500;
/** Twice this is well within a term that cannot be renewed meanwhile. */
const ON_ITS_WAY_MS = 300;

export function fencing({ backend, open, faults }: Suite): void {
  it("9.4 an old leader that stood still past its lease cannot commit a result, and the successor's stands", async (t) => {
    const cluster = await open(t, "brisk");
    for (let round = 0; round < (faults === "once" ? 1 : 3); round++) {
      const { leader } = await cluster.settled();
      await (cluster.store === "shared"
        ? besideASuccessor(cluster, leader)
        : inAStoreOfItsOwn(cluster, leader));
    }
  });

  const skip =
    (backend === "peers" && "a store of its own has no wire to it that could be held up") ||
    (faults === "once" && "left to the long run");
  it(
    "9.4 a result that was on its way to the store when its leader was paused is not stored",
    { skip },
    async (t) => {
      const cluster = await open(t, "brisk", { wired: true });
      const { leader: old } = await cluster.settled();
      const atOld = cluster.at(old.name);
      const lease = await leased(atOld);
      // What the store is asked before the write passes, its answer a little late, and then the write itself is held up.
      await cluster.wire(old.name).freeze("down");
      const answering = Promise.allSettled([
        atOld.call("POST", "/v1/results", resultOf(lease, { result: "late" }), AbortSignal.timeout(60_000)),
      ]);
      await systemClock.sleep(ON_ITS_WAY_MS);
      await cluster.wire(old.name).freeze("up");
      await systemClock.sleep(ON_ITS_WAY_MS);
      // The leader believed in its term, rightly, and has written; it is the network that has not delivered.
      old.node.signal("SIGSTOP");
      const successor = await cluster.successor(old.epoch);
      const atNext = cluster.at(successor.name);
      // Run and lease are still the right ones: nothing but the term can refuse it.
      const current = await renewed(atNext, lease, successor.epoch);

      const before = await cluster.stored();
      await cluster.wire(old.name).forward();
      await systemClock.sleep(2 * SENT_MS);
      assert.deepEqual(await cluster.stored(), before, "the write of an old term was stored");
      old.node.signal("SIGCONT");
      const [answer] = await answering;
      // It may have given the store up meanwhile and say that it does not know; it may not say that it was accepted.
      if (answer.status === "fulfilled")
        assert.notEqual(answer.value.status, 200, JSON.stringify(answer.value.body));
      await follows(old, successor);
      assert.deepEqual(await cluster.stored(), before);
      const settled = await atNext.result(current, { result: "of the successor" });
      assert.equal(settled.status, 200, JSON.stringify(settled.body));
      assert.equal((await resultAt(atOld, lease)).body.result, "of the successor");
    },
  );
}

async function besideASuccessor(cluster: ConformanceCluster, old: Led): Promise<void> {
  const atOld = cluster.at(old.name);
  const [finished, open, reassigned] = [await leased(atOld), await leased(atOld), await leased(atOld)];
  old.node.signal("SIGSTOP");
  const successor = await cluster.successor(old.epoch);
  const atNext = cluster.at(successor.name);

  const current = await renewed(atNext, finished, successor.epoch);
  const settled = await atNext.result(current, { result: "of the successor" });
  assert.deepEqual([settled.status, settled.body.status], [200, "completed"], JSON.stringify(settled.body));
  await renewed(atNext, open, successor.epoch);
  const released = await atNext.result(await renewed(atNext, reassigned, successor.epoch), {
    status: "released",
  });
  assert.equal(released.status, 200, JSON.stringify(released.body));
  const taken = await atNext.lease({ agent: "bob" });
  assert.equal(taken.tasks[0]!.job_id, reassigned.tasks[0]!.job_id);

  const before = await cluster.stored();
  const late = [finished, open, reassigned].flatMap((lease) => [
    resultOf(lease, { result: "late" }),
    resultOf(lease, { result: "late", leader_epoch: successor.epoch }),
  ]);
  const answers = await sentWhileStill(atOld, late, old);
  answers.forEach((told) => assertFenced(told));
  assert.deepEqual(await cluster.stored(), before, "what the old leader was sent has changed nothing");

  // It has seen by now who leads, and says so.
  await follows(old, successor);
  for (const result of late) {
    const { status, body } = await atOld.post("/v1/results", result);
    assert.deepEqual([status, body.error, body.leader_id], [409, "NOT_LEADER", successor.name]);
  }
  assert.deepEqual(await cluster.stored(), before);

  // The job that was given to another agent: the first one's result is late at the right leader too.
  const stale = await atNext.result({ ...reassigned, leader_epoch: successor.epoch }, { result: "late" });
  assert.deepEqual([stale.status, stale.body.error], [409, "STALE_EPOCH"], JSON.stringify(stale.body));
  assert.deepEqual(await cluster.stored(), before);
  const bobs = await atNext.result(taken, { result: "of the other agent" });
  assert.deepEqual([bobs.status, bobs.body.status], [200, "completed"], JSON.stringify(bobs.body));
  for (const at of [atNext, atOld]) {
    assert.equal((await resultAt(at, finished)).body.result, "of the successor");
    assert.equal((await resultAt(at, reassigned)).body.result, "of the other agent");
    assert.equal((await at.job(open.tasks[0]!.job_id)).status, "processing");
  }
  // Held to the end, and taken by the leader of the term.
  const ended = await atNext.result({ ...open, leader_epoch: successor.epoch });
  assert.equal(ended.status, 200, JSON.stringify(ended.body));
}

/** No successor has its jobs, so there is no result of one; what the old leader has leased ends with its term. */
async function inAStoreOfItsOwn(cluster: ConformanceCluster, old: Led): Promise<void> {
  const atOld = cluster.at(old.name);
  const leases = [await leased(atOld), await leased(atOld)];
  old.node.signal("SIGSTOP");
  const successor = await cluster.successor(old.epoch);
  const late = leases.flatMap((lease) => [
    resultOf(lease, { result: "late" }),
    resultOf(lease, { result: "late", leader_epoch: successor.epoch }),
  ]);
  const answers = await sentWhileStill(atOld, late, old);
  answers.forEach((told) => assertFenced(told));
  // Among peers the first may well be elected again, under a later term.
  await eventually(
    `${old.name} to know of a later term`,
    async () => ((await roleOf(old.node, 2_000))?.leader_epoch ?? 0) >= successor.epoch,
    30_000,
  );
  for (const lease of leases) {
    const { status, body } = await resultAt(atOld, lease);
    assert.deepEqual([status, body.error], [409, "NOT_FINISHED"], JSON.stringify(body));
  }
}

/** Each alone and all as one list; they are in its socket when it goes on, so that they are the first that it sees. */
async function sentWhileStill(
  atOld: ControllerCalls,
  results: readonly object[],
  old: Led,
): Promise<readonly Told[]> {
  const sending = [...results, results].map((body) =>
    atOld.call("POST", "/v1/results", body, AbortSignal.timeout(60_000)),
  );
  const answered = Promise.allSettled(sending);
  await systemClock.sleep(SENT_MS);
  old.node.signal("SIGCONT");
  return (await answered).map((each) => {
    assert.ok(each.status === "fulfilled", `no answer: ${String((each as PromiseRejectedResult).reason)}`);
    return each.value;
  });
}

/** A list is answered as a whole by who does not lead, or with an outcome for each. */
function assertFenced({ status, body }: Told): void {
  const text = JSON.stringify(body);
  const each: any[] = Array.isArray(body) ? body : [body];
  if (!Array.isArray(body)) assert.equal(status, 409, text);
  for (const { error, accepted } of each) {
    assert.ok(error === "STALE_EPOCH" || error === "NOT_LEADER", `${status} ${text}`);
    assert.notEqual(accepted, true, text);
  }
}

async function leased(at: ControllerCalls): Promise<Leased> {
  const id = await at.submit();
  const lease = await at.lease();
  assert.equal(lease.tasks[0]!.job_id, id);
  return lease;
}

function resultAt(at: ControllerCalls, { tasks }: Leased): Promise<Told> {
  return at.get(`/jobs/${tasks[0]!.job_id}/result`);
}

async function renewed(at: ControllerCalls, lease: Leased, epoch: number): Promise<Leased> {
  const { status, body } = await at.post("/v1/leases/renew", { agent: "ada", lease_id: lease.lease_id });
  assert.deepEqual([status, body.leader_epoch], [200, epoch], JSON.stringify(body));
  return { ...lease, leader_epoch: epoch };
}

function follows(old: Led, successor: Led): Promise<true> {
  return eventually(
    `${old.name} to follow ${successor.name}`,
    async () => {
      const role = await roleOf(old.node, 2_000);
      return role?.role === "STANDBY" && role.leader_id === successor.name;
    },
    30_000,
  );
}

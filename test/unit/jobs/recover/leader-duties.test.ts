import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { SubmitRequest } from "../../../../src/jobs/submit/submitter.ts";
import type { LeaseId } from "../../../../src/core/ids.ts";
import { DEFAULT_BUDGETS } from "../../../../src/core/jobs/job.ts";
import { LeaseReaper, type LeaseReaperOptions } from "../../../../src/jobs/recover/lease-reaper.ts";
import { retentionDuty } from "../../../../src/jobs/retention-duty.ts";
import { NodeEvents } from "../../../../src/platform/node-events.ts";
import type { ClaimedJob, ClaimRequest } from "../../../../src/store/store.ts";
import { claimRequest } from "../../../support/job-builders.ts";
import { atEnd } from "../../../support/node-cleanup.ts";
import { NODE, WorkerWorld, heldWorld } from "../../../support/node-worker.ts";
import { recordingLog } from "../../../support/node-log.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

async function leading(t: TestContext, world: WorkerWorld) {
  const term = await world.store.terms.grant("scheduler", { name: NODE, incarnation: "leader" });
  const over = new AbortController();
  const duties: Promise<void>[] = [];
  atEnd(t, async () => {
    over.abort();
    await Promise.allSettled(duties);
  });
  return { term, signal: over.signal, duties };
}

/** A run of somebody who keeps its lease and never ends it. */
async function claimedElsewhere(
  world: WorkerWorld,
  fields: Partial<SubmitRequest>,
  under: Partial<ClaimRequest> = {},
): Promise<ClaimedJob> {
  await world.submit("elsewhere", fields);
  const hold = { worker: "node-b", lease: "node-b/7/0" as LeaseId, leaseMs: HOUR_MS };
  const request = claimRequest({ ...hold, limit: 1, tasks: new Set(["elsewhere"]), ...under });
  const { jobs } = await world.store.jobs.claim(request);
  return jobs[0]!;
}

/** A reaper of this world with a log of its own; `recovered` has the ids of the jobs that it takes back. */
function reaperOf(world: WorkerWorld, options: Partial<LeaseReaperOptions> = {}) {
  const log = recordingLog();
  const events = new NodeEvents(log);
  const recovered: string[] = [];
  events.on("jobs.recovered", (jobs) => void recovered.push(...jobs.map(({ id }) => id)));
  const { store, platform } = world;
  const budgets = DEFAULT_BUDGETS;
  const reaper = new LeaseReaper(
    { ...platform, log, events },
    { store, budgets, intervalMs: 1_000, ...options },
  );
  return { reaper, recovered, log, events };
}

describe("the reaper of leases", () => {
  it("puts jobs of a silent worker back, one crash the poorer, and tells who follows them", async (t) => {
    const { world } = await heldWorld(t, "held", "stubborn");
    const id = await world.running("held");
    const { term, signal, duties } = await leading(t, world);
    const { reaper, recovered } = reaperOf(world);
    duties.push(reaper.duty(term, signal));
    await world.advance(60_000);
    assert.deepEqual(recovered, [], "a lease that is renewed is left alone");
    world.faults.fail("renew", "claim");
    await world.advance(9_000);
    assert.deepEqual(recovered, [], "not before its end");
    await world.advance(4_000);
    assert.deepEqual(recovered, [id]);
    const job = await world.job(id);
    assert.deepEqual([job.status, job.crashes, job.failures, job.killed], ["queued", 1, 0, [NODE]]);
  });

  it("blames no agent whose lease runs out before it could find the new leader", async (t) => {
    const world = await WorkerWorld.open(t, { tasks: [] });
    const { term, signal, duties } = await leading(t, world);
    const { reaper, recovered } = reaperOf(world, { agentLeaseMs: 5_000 });
    const lease = (ms: number): Promise<ClaimedJob> =>
      claimedElsewhere(world, {}, { lease: `agent:ada/${ms}` as LeaseId, leaseMs: ms });
    const [unled, unheard, silent] = [await lease(500), await lease(6_000), await lease(8_000)];
    duties.push(reaper.duty(term, signal));
    await world.advance(2_000);
    world.platform.state.agentsHeardSince = world.clock.monotonic();
    await world.advance(8_000);
    assert.deepEqual(recovered, [unled.id, unheard.id, silent.id]);
    const spent = async ({ id }: ClaimedJob) => {
      const { interruptions, crashes } = await world.job(id);
      return [interruptions, crashes];
    };
    assert.deepEqual(await spent(unled), [1, 0], "nobody led");
    assert.deepEqual(await spent(unheard), [1, 0], "there had been a leader for 4 s");
    assert.deepEqual(await spent(silent), [0, 1], "there had been one for 6 s, longer than a lease");
  });

  it("puts a job that keeps killing its nodes into quarantine, with their names", async (t) => {
    const { world } = await heldWorld(t, "held", "stubborn");
    const id = await world.submit("held");
    const { term } = await leading(t, world);
    const { reaper, events, log } = reaperOf(world);
    events.on("jobs.recovered", () => world.worker.wake());
    for (let crash = 1; crash <= 3; crash++) {
      await world.until(id, "processing");
      await reaper.recover({ by: "incarnations", incarnations: ["1"] }, term);
      await world.advance(2_000); // the worker hears that its lease is gone
    }
    const job = await world.job(id);
    assert.deepEqual(
      [job.status, job.error?.code, job.killed],
      ["failed", "QUARANTINED", [NODE, NODE, NODE]],
    );
    assert.equal(log.about("quarantine"), 1);
    assert.equal(await world.jobs.retry(id), "retried");
    assert.equal((await world.until(id, "processing")).crashes, 0, "retried by hand it starts afresh");
  });

  it("takes a run away half a minute after its timeout, and looks for such runs every few seconds", async (t) => {
    const world = await WorkerWorld.open(t, { tasks: [] });
    const stuck = await claimedElsewhere(world, { timeoutMs: 1_000 });
    const { term, signal, duties } = await leading(t, world);
    const looks: Record<string, number> = { expiry: 0, overdue: 0 };
    const jobs = new Proxy(world.store.jobs, {
      get(target, name) {
        if (name !== "recover") return Reflect.get(target, name).bind(target);
        return (...args: Parameters<typeof target.recover>) => {
          looks[args[0].by]!++;
          return target.recover(...args);
        };
      },
    });
    const { reaper, recovered, log } = reaperOf(world, { store: { jobs } });
    duties.push(reaper.duty(term, signal));
    await world.advance(30_999);
    assert.deepEqual(recovered, []);
    await world.advance(5_001);
    assert.deepEqual([recovered, log.about("ran long past its timeout")], [[stuck.id], 1]);
    assert.ok(looks["overdue"]! >= 7 && looks["overdue"]! <= 8, `${looks["overdue"]} looks in 36 s`);
    assert.ok(looks["expiry"]! >= 36);
  });
});

describe("retention", () => {
  it("looks again and again, and removes what is old enough by then", async (t) => {
    const world = await WorkerWorld.open(t, { tasks: [["fine", () => {}]] });
    const { term, signal, duties } = await leading(t, world);
    const retention = { completedMs: MINUTE_MS, failedMs: 0, cancelledMs: 0, journalMs: 0 };
    duties.push(retentionDuty(world.platform, world.store, retention)(term, signal));
    for (let round = 0; round < 2; round++) {
      const id = await world.submit("fine");
      await world.until(id, "completed");
      await world.advance(MINUTE_MS - 1);
      assert.ok(await world.store.jobs.get(id));
      await world.advance(5_001);
      assert.equal(await world.store.jobs.get(id), null);
    }
  });

  it("removes many in pieces, without a long wait between them", async (t) => {
    const world = await WorkerWorld.open(t, { tasks: [["fine", () => {}]] });
    const ids = await world.submitMany(2_000, "fine");
    await world.until(ids.at(-1)!, "completed");
    const { term, signal, duties } = await leading(t, world);
    const retention = { completedMs: 0, failedMs: 0, cancelledMs: 0, journalMs: 0 };
    await world.advance(1);
    duties.push(retentionDuty(world.platform, world.store, retention)(term, signal));
    await world.advance(200);
    assert.equal((await world.store.jobs.list({ limit: 1 })).jobs.length, 0);
  });
});

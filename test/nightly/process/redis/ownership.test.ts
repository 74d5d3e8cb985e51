/**
 * Two coordinators, a worker and a Redis: the events of each running job are one coordinator's business. It may be drained
 * or stopped, and the jobs run on as if nothing had happened (S59, S71, S75). One
 * that is killed: postgres/push.test.ts; each way to lose an owner: test/unit/push/ownership.
 */

import assert from "node:assert/strict";
import { afterEach, before, describe, it } from "node:test";
import type { JobBody } from "../../../../src/client/baton-client.ts";
import { baton } from "../../../support/process.ts";
import { QUICK, TestCluster } from "../../../support/cluster.ts";
import { suiteScope } from "../../../support/node-cleanup.ts";
import type { NodeProcess } from "../../../support/process-node.ts";
import { eventually } from "../../../support/wait.ts";

const COORDINATOR = { ROLES: "gateway,scheduler" };
const WORKER = { ROLES: "gateway,worker", WORKER__CONCURRENCY: "400" };
/** Enough for many assignments: while jobs seem long, each has at most twenty. Of few, one of the two might get all. */
const JOBS = 360;

describe("jobs that run on one node and are owned by another", () => {
  const suite = suiteScope();
  let cluster: TestCluster;
  let worker: NodeProcess;

  before(async () => {
    const settings = { ...QUICK, REBALANCE__ENABLED: "false", HANDOFF__ACK_TIMEOUT: "500ms" };
    cluster = await TestCluster.open(suite, { settings, redis: {} });
    await cluster.start("ada", COORDINATOR);
    await cluster.start("bob", COORDINATOR);
    worker = await cluster.start("wim", WORKER);
    await cluster.leader();
  });

  /** What a failed test has left running would take places of the next. */
  afterEach(async () => {
    for (const { job_id, status } of await worker.allJobs())
      if (status === "processing" || status === "queued") await worker.client.cancel(job_id);
    await worker.idle();
  });

  /** Jobs that run until they are told to stop, all of them owned. */
  async function running(count = JOBS): Promise<JobBody[]> {
    const submitted = await worker.client.submitMany(
      Array.from({ length: count }, () => ({ task: "hold", max_attempts: 1 })),
    );
    return Promise.all(submitted.map(({ job_id }) => owned(job_id)));
  }

  function owned(id: string, by?: string): Promise<JobBody> {
    return eventually(`${id} to be owned`, async () => {
      const job = await worker.client.job(id);
      // Until somebody owns it, the node of its worker is shown.
      return job.status === "processing" && job.owner !== "wim" && (!by || job.owner === by) ? job : null;
    });
  }

  function ofOwner(jobs: readonly JobBody[], owner: string): JobBody[] {
    return jobs.filter((job) => job.owner === owner);
  }

  /** Whoever owns most of them, and the other one: they compete, and nobody can say who wins. */
  function owners(jobs: readonly JobBody[]): {
    name: string;
    other: string;
    mine: JobBody[];
    theirs: JobBody[];
  } {
    const [ada, bob] = [ofOwner(jobs, "ada"), ofOwner(jobs, "bob")];
    return ada.length >= bob.length
      ? { name: "ada", other: "bob", mine: ada, theirs: bob }
      : { name: "bob", other: "ada", mine: bob, theirs: ada };
  }

  /** The very run that was there before, under another owner. */
  function assertUndisturbed(before: JobBody, after: JobBody, owner: string): void {
    assert.deepEqual(
      [
        after.status,
        after.owner,
        after.worker,
        after.job_epoch,
        after.attempts,
        after.crashes,
        after.interruptions,
      ],
      ["processing", owner, "wim", before.job_epoch, 1, 0, 0],
    );
    assert.ok(after.owner_epoch > before.owner_epoch, "a handover raises the owner epoch");
  }

  async function cancelAll(jobs: readonly JobBody[]): Promise<void> {
    for (const { job_id } of jobs) await worker.client.cancel(job_id);
    for (const { job_id } of jobs) {
      const { job } = await worker.client.wait(job_id, { timeoutMs: 10_000 });
      assert.equal(job.status, "cancelled");
    }
  }

  it("`baton node drain --watch` hands them to the other coordinator, and a resume lets it own again", async (t) => {
    const jobs = await running();
    const { name, other, mine, theirs } = owners(jobs);
    t.diagnostic(`${name} owns ${mine.length}, ${other} ${theirs.length}`);
    const drained = await baton(worker, "node", "drain", name, "--watch", "--timeout", "20s");
    assert.equal(drained.code, 0, drained.err);
    assert.match(
      drained.out,
      new RegExp(`${name} is drained.*${mine.length} of ${mine.length} owned jobs handed over`),
    );
    assert.match(drained.err, new RegExp(`${name} is draining`));
    for (const job of mine) assertUndisturbed(job, await worker.client.job(job.job_id), other);
    for (const job of theirs) {
      assert.equal((await worker.client.job(job.job_id)).owner_epoch, job.owner_epoch, "left alone");
    }
    assert.deepEqual(await worker.lines(mine[0]!.job_id), ["holding"], "it was never told to stop");
    assert.equal((await baton(worker, "node", "resume", name)).code, 0);
    await cancelAll(jobs);
    // With the other one gone it is the only one who can.
    assert.equal((await baton(worker, "node", "drain", other, "--timeout", "20s")).code, 0);
    const again = await running(4);
    assert.equal(ofOwner(again, name).length, 4, "it owns again");
    assert.equal((await baton(worker, "node", "resume", other)).code, 0);
    await cancelAll(again);
  });

  it("SIGTERM of their owner while nobody else can own: released, exit 6, and owned again when somebody comes", async () => {
    const jobs = await running(10);
    // Both go at once: neither can take what the other gives away.
    const [ada, bob] = await Promise.all(["ada", "bob"].map((name) => cluster.node(name).terminate()));
    const codes = [ada!.code, bob!.code];
    assert.ok(codes.includes(6), `one at least is left with jobs: ${codes.join(", ")}`);
    assert.ok(ada!.tookMs < 15_000 && bob!.tookMs < 15_000, `${ada!.tookMs} and ${bob!.tookMs} ms`);
    cluster.forget("ada");
    cluster.forget("bob");
    await cluster.start("eve", COORDINATOR);
    await cluster.leader();
    for (const job of jobs) assertUndisturbed(job, await owned(job.job_id, "eve"), "eve");
    await cancelAll(jobs);
  });
});

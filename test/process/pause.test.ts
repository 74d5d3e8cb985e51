import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import { systemClock } from "../../src/platform/clock.ts";
import { dataDirectory, NodeProcess } from "../support/process-node.ts";
import { eventually } from "../support/wait.ts";

it("a node that stood still for longer than its lease takes a new term; no job is lost or doubled", async (t) => {
  const data = await dataDirectory(t);
  const ledger = join(data, "ledger");
  const settings = {
    LEADER__LEASE: "1s",
    LEADER__RENEW: "200ms",
    LEADER__MARGIN: "300ms",
    LEADER__RETRY: "100ms",
    WORKER__CONCURRENCY: "5",
    WORKER__LEASE: "500ms",
    WORKER__RENEW: "100ms",
  };
  const node = await NodeProcess.start(t, { data, settings });
  await node.client.putSchedule({ name: "tick", task: "tick", every_ms: 1_000, missed: "run_all" });
  const before = await node.client.role();
  assert.equal(before.role, "LEADER");
  const work = Array.from({ length: 200 }, () => ({ task: "work", payload: { ms: 20, ledger } }));
  const submitted = await node.client.submitMany(work);
  await eventually("the work to begin", async () => {
    const { queues } = await node.client.queues();
    return queues.some(({ counts }) => counts.completed > 10) || null;
  });
  node.signal("SIGSTOP");
  const during = node.client.submit({ task: "work", payload: { ms: 0, ledger } });
  await systemClock.sleep(2_500);
  node.signal("SIGCONT");
  submitted.push(await during);

  const after = await eventually("a new term", async () => {
    const role = await node.client.role();
    return role.role === "LEADER" && role.leader_epoch! > before.leader_epoch! ? role : null;
  });
  assert.equal(after.leader_epoch, before.leader_epoch! + 1);
  for (const { job_id } of submitted) {
    const job = await node.jobWhen(job_id, ({ status }) => status === "completed");
    assert.deepEqual([job.attempts, job.crashes], [1, 0]);
  }
  const runs = (await readFile(ledger, "utf8")).trim().split("\n");
  assert.equal(runs.length, submitted.length, "every job ran once");
  assert.equal(new Set(runs).size, submitted.length);

  const { occurrences } = await node.client.scheduleHistory("tick", 100);
  const instants = occurrences.map(({ at }) => Date.parse(at));
  assert.equal(new Set(instants).size, instants.length);
  assert.ok(occurrences.every((occurrence) => occurrence.outcome === "fired"));
  instants
    .slice(1)
    .forEach((at, index) => assert.equal(instants[index]! - at, 1_000, "no occurrence is missing"));
  const firstOfNewTerm = await node.client.job((await node.client.submit({ task: "tick" })).job_id);
  assert.equal(firstOfNewTerm.leader_epoch, after.leader_epoch);
});

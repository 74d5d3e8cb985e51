import assert from "node:assert/strict";
import { it } from "node:test";
import { systemClock } from "../../src/platform/clock.ts";
import { dataDirectory, NodeProcess } from "../support/process-node.ts";
import { eventually } from "../support/wait.ts";

it("a schedule fires every occurrence once over several kills", async (t) => {
  const data = await dataDirectory(t);
  const settings = { JOBS__CRASHES_MAX: "1000" };
  let node = await NodeProcess.start(t, { data, settings });
  const every = { name: "tick", task: "tick", every_ms: 1_000 } as const;
  await node.client.putSchedule({ ...every, missed: "run_all", missed_max: 1_000 });
  for (let kill = 0; kill < 3; kill++) {
    await systemClock.sleep(700 + kill * 130); // at another moment of the second each time
    await node.kill();
    node = await NodeProcess.start(t, { data, settings });
    const put = await node.client.putSchedule({ ...every, missed: "run_all", missed_max: 1_000 });
    assert.equal(put.outcome, "unchanged", "a deploy that puts it again starts nothing anew");
  }
  const restartedAt = systemClock.now();
  const occurrences = await eventually("the schedule to catch up", async () => {
    const { occurrences } = await node.client.scheduleHistory("tick", 1_000);
    return Date.parse(occurrences[0]!.at) > restartedAt + 1_000 ? occurrences : null;
  });
  await node.idle();

  const instants = occurrences.map(({ at }) => Date.parse(at)).reverse();
  assert.ok(instants.length >= 5, `${instants.length} occurrences`);
  instants.slice(1).forEach((at, index) => assert.equal(at - instants[index]!, 1_000, "none is missing"));
  assert.ok(occurrences.every((occurrence) => occurrence.outcome === "fired"));
  const noted = occurrences.map(({ job_id }) => job_id);
  const jobs = (await node.allJobs({ task: "tick" })).filter(({ job_id }) => noted.includes(job_id));
  assert.equal(new Set(noted).size, noted.length, "each occurrence has a job of its own");
  assert.equal(jobs.length, noted.length);
  assert.ok(jobs.every(({ status, schedule }) => status === "completed" && schedule === "tick"));
  const all = await node.allJobs({ task: "tick" });
  const { occurrences: latest } = await node.client.scheduleHistory("tick", 1_000);
  assert.ok(all.length <= latest.length, "no job without an occurrence");
});

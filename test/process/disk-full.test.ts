import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import { dataDirectory, NodeProcess } from "../support/process-node.ts";
import { smallDisk } from "../support/small-disk.ts";
import { eventually } from "../support/wait.ts";

const MIB = 1_048_576;

it("a node whose disk is full refuses writes, answers reads, tears nothing, and recovers", async (t) => {
  const disk = await smallDisk(t, 8 * MIB);
  if (typeof disk !== "string") return t.skip(disk.missing);
  const data = join(disk, "data");
  const ballast = join(disk, "ballast");
  await writeFile(ballast, Buffer.alloc(3 * MIB));

  const node = await NodeProcess.start(t, { data });
  await node.client.pauseQueue("parked");
  // Ends while the disk is full: its result has to wait for space. A smaller one could find it in the log of the refused submit.
  const until = join(await dataDirectory(t), "full");
  const running = await node.begins({ task: "work", payload: { until, filler: 400_000 } });
  const accepted: string[] = [];
  const big = { task: "work", queue: "parked", payload: { ms: 0, filler: "x".repeat(200_000) } };
  let refusal: Awaited<ReturnType<NodeProcess["post"]>> | null = null;
  for (let count = 0; count < 100 && refusal === null; count++) {
    const answer = await node.post("/jobs", big);
    if (answer.status === 200) accepted.push((answer.body as { job_id: string }).job_id);
    else refusal = answer;
  }
  assert.ok(refusal, "the disk never filled up");
  assert.equal(refusal.status, 503);
  const { error, message } = refusal.body as { error: string; message: string };
  assert.equal(error, "STORE_UNAVAILABLE");
  assert.match(message, /full; free some space on the disk/);
  assert.ok(refusal.headers.get("retry-after"));

  for (const id of accepted) assert.equal((await node.client.job(id)).status, "queued", "reads go on");
  assert.equal((await node.allJobs()).length, accepted.length + 1, "the refused job has left no trace");
  const again = await node.post("/jobs", big);
  assert.equal(again.status, 503, "and it goes on refusing");
  // Fill what is left, so that the result of the running job finds no space either.
  await writeFile(join(disk, "rest"), Buffer.alloc(8 * MIB)).catch(() => {});
  await writeFile(until, "");
  await eventually("its end to be refused", () => node.stdout.includes("could not store results"));
  assert.equal((await node.client.job(running)).status, "processing", "its end is not stored yet");

  await rm(ballast);
  await rm(join(disk, "rest"));
  const finished = await node.jobWhen(running, ({ status }) => status === "completed");
  assert.deepEqual([finished.attempts, finished.crashes], [1, 0], "its result was kept meanwhile");
  const { job_id: next } = await node.client.submit({ task: "work", payload: { ms: 0 } });
  await node.client.wait(next, { timeoutMs: 30_000 });
  await node.kill();

  const after = await NodeProcess.start(t, { data });
  const stored = new Set((await after.allJobs()).map(({ job_id }) => job_id));
  assert.deepEqual(stored, new Set([...accepted, running, next]));
  await after.client.resumeQueue("parked");
  await after.idle();
  assert.equal((await after.terminate()).code, 0);
});

it("a node cannot start on a full disk, and says so in plain words", async (t) => {
  const disk = await smallDisk(t, MIB);
  if (typeof disk !== "string") return t.skip(disk.missing);
  await writeFile(join(disk, "ballast"), Buffer.alloc(2 * MIB)).catch(() => {});
  const node = NodeProcess.spawn(t, { data: join(disk, "data") });
  assert.equal((await node.exited).code, 1);
  assert.match(node.stderr, /error: .*free some space on the disk|error: .*no space left/i);
  assert.doesNotMatch(node.stderr, /\n\s+at /);
});

it("a node that is told to stop while its disk is full still stops in time", async (t) => {
  const disk = await smallDisk(t, 4 * MIB);
  if (typeof disk !== "string") return t.skip(disk.missing);
  const settings = { DRAIN__TIMEOUT: "600ms", DRAIN__CLEANUP: "300ms" };
  const node = await NodeProcess.start(t, { data: join(disk, "data"), settings });
  const id = await node.begins({ task: "hold" });
  await writeFile(join(disk, "rest"), Buffer.alloc(8 * MIB)).catch(() => {});
  const { code } = await node.terminate();
  assert.equal(code, 0, `one that is not in time ends with another code: ${node.stderr}`);
  await rm(join(disk, "rest"));
  const next = await NodeProcess.start(t, { data: join(disk, "data") });
  const job = await next.processing(id);
  assert.equal(job.failures, 0);
});

import assert from "node:assert/strict";
import { appendFile, cp, open, readdir, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { before, describe, it } from "node:test";
import { systemClock } from "../../src/platform/clock.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import { suiteScope, type Scope } from "../support/node-cleanup.ts";
import { dataDirectory, NodeProcess } from "../support/process-node.ts";

/** A start that is refused: what it says, and its exit code. */
async function refused(t: Scope, data: string): Promise<{ code: number | null; said: string }> {
  const node = NodeProcess.spawn(t, { data });
  const { code } = await node.exited;
  return { code, said: node.stderr };
}

/** A data directory with finished jobs in it, its node gone. */
async function used(t: Scope, jobs: number, end: "terminate" | "kill"): Promise<[string, string[]]> {
  const data = await dataDirectory(t);
  const node = await NodeProcess.start(t, { data });
  const payload = { ms: 0, note: "x".repeat(500) };
  const ids = await node.client.submitMany(Array.from({ length: jobs }, () => ({ task: "work", payload })));
  await node.idle();
  await node[end]();
  return [data, ids.map(({ job_id }) => job_id)];
}

describe("a data directory", () => {
  const suite = suiteScope();
  let stopped: string;

  before(async () => {
    [stopped] = await used(suite, 300, "terminate");
  });

  async function copyOfStopped(t: Scope): Promise<string> {
    const data = await dataDirectory(t);
    await cp(stopped, data, { recursive: true });
    return data;
  }

  it("belongs to one node: a second one refuses to start, and the first does not notice", async (t) => {
    const data = await dataDirectory(t);
    const first = await NodeProcess.start(t, { data });
    const id = await first.begins({ task: "hold" });
    const { code, said } = await refused(t, data);
    assert.equal(code, 1);
    assert.match(said, /error: .*baton\.db is in use by another process/);
    assert.match(said, /--data/);
    assert.doesNotMatch(said, /\n\s+at /, "words, not a stack");
    const job = await first.client.job(id);
    assert.deepEqual([job.status, job.attempts, job.crashes], ["processing", 1, 0]);
    assert.equal((await first.client.role()).leader_epoch, 1);
    await first.does({ task: "work", payload: { ms: 0 } });
    await first.kill();
    const second = await NodeProcess.start(t, { data });
    assert.equal((await second.client.role()).leader_epoch, 2, "the refused start was no term");
  });

  it("with a file that is not ours is refused in plain words, and left as it is", async (t) => {
    const data = await dataDirectory(t);
    const garbage = "this is not a database at all. ".repeat(500);
    await writeFile(join(data, "baton.db"), garbage);
    const { code, said } = await refused(t, data);
    assert.equal(code, 1);
    assert.match(said, /error: .*baton\.db is damaged \(file is not a database\); .*move it away/);
    assert.doesNotMatch(said, /\n\s+at /);
    assert.equal((await stat(join(data, "baton.db"))).size, garbage.length);
  });

  /** As a start does it, without its process. */
  const opening = (dir: string): Promise<unknown> => openSqliteStore({ dir, clock: systemClock });

  it("with a truncated file, or an overwritten header, is refused in plain words", async (t) => {
    const [short, scribbled] = [await copyOfStopped(t), await copyOfStopped(t)];
    const path = join(short, "baton.db");
    await truncate(path, Math.floor((await stat(path)).size / 2 / 4096) * 4096);
    const file = await open(join(scribbled, "baton.db"), "r+");
    await file.write(Buffer.alloc(4096, 0xab), 0, 4096, 0);
    await file.close();
    for (const data of [short, scribbled]) await assert.rejects(opening(data), /baton\.db is damaged/);
  });

  it("of a newer version is refused, with both numbers", async (t) => {
    const data = await copyOfStopped(t);
    const db = new DatabaseSync(join(data, "baton.db"));
    db.exec("PRAGMA user_version = 999");
    db.close();
    await assert.rejects(
      opening(data),
      /written by a newer version of Baton \(schema 999, this version knows \d+\)/,
    );
  });

  it("that cannot be a directory is refused in plain words", async (t) => {
    const data = await dataDirectory(t);
    await writeFile(join(data, "file"), "");
    await assert.rejects(opening(join(data, "file")), /--data directory/);
  });

  it("keeps every acknowledged job when the end of its log is torn", async (t) => {
    const [data, ids] = await used(t, 200, "kill");
    const wal = (await readdir(data)).find((name) => name.endsWith("-wal"));
    assert.ok(wal, "a killed node leaves its write-ahead log");
    // What a power cut leaves behind the last commit: part of a page that was never acknowledged.
    await appendFile(join(data, wal), Buffer.alloc(3_333, 0x5a));
    const node = await NodeProcess.start(t, { data });
    const jobs = await node.allJobs();
    assert.deepEqual(new Set(jobs.map(({ job_id }) => job_id)), new Set(ids));
    assert.ok(jobs.every(({ status }) => status === "completed"));
  });
});

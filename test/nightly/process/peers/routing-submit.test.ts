/** S85: the node that a job was given to dies or hangs in the middle of taking it, under load. One submit stays one job. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { atEnd, suiteScope } from "../../../support/node-cleanup.ts";
import { birthplace, langidFile, PeerCluster, QUICK_PEERS } from "../../../support/peer-cluster.ts";
import { eventually } from "../../../support/wait.ts";

/** Callers who never send anything twice: what they were not told, nobody repeats for them. */
class Submitters {
  /** By mark, with the id that was acknowledged or null where an error was. */
  readonly answers = new Map<string, string | null>();
  readonly refusals: string[] = [];
  slowestMs = 0;
  readonly #urls: readonly string[];

  readonly #name: string;

  #stopped = false;
  #loops: Promise<void>[] = [];

  constructor(name: string, urls: readonly string[]) {
    this.#name = name;
    this.#urls = urls;
  }

  start(count: number): void {
    this.#loops = Array.from({ length: count }, (_, n) => this.#loop(n));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#loops);
  }

  async #loop(n: number): Promise<void> {
    for (let turn = 0; !this.#stopped; turn++) {
      const mark = `${this.#name}-${n}-${turn}`;
      const withKey = turn % 4 === 0 ? { idempotency_key: `key-${mark}` } : {};
      const startedAt = systemClock.monotonic();
      this.answers.set(mark, null);
      const answer = await fetch(`${this.#urls[(n + turn) % this.#urls.length]}/jobs`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ task: "work", payload: { ms: 0, mark }, ...withKey }),
      });
      const body = (await answer.json()) as { job_id?: string; error?: string };
      this.slowestMs = Math.max(this.slowestMs, systemClock.monotonic() - startedAt);
      if (answer.status === 200) this.answers.set(mark, body.job_id!);
      else this.refusals.push(`${answer.status} ${body.error}`);
      await systemClock.sleep(25);
    }
  }
}

describe("S85: a job whose target fails while it takes it", { timeout: 120_000 }, () => {
  const suite = suiteScope();
  let cluster: PeerCluster;

  before(async () => {
    const file = langidFile({ internal_request_timeout_seconds: 2, rr_strategy: "per-node" });
    cluster = await PeerCluster.start(suite, { file, settings: QUICK_PEERS });
  });

  /** Every mark with the ids of the jobs that carry it, over all stores. */
  async function stored(): Promise<Map<string, string[]>> {
    const marks = new Map<string, string[]>();
    for (const [name, node] of cluster.nodes) {
      const ids = (await node.allJobs({ task: "work" })).map(({ job_id }) => job_id);
      const jobs = await Promise.all(ids.map((id) => node.client.job(id).catch(() => null)));
      for (const job of jobs) {
        if (job === null) continue; // taken back in between
        assert.equal(birthplace(job.job_id), name);
        const { mark } = job.payload as { mark: string };
        marks.set(mark, [...(marks.get(mark) ?? []), job.job_id]);
      }
    }
    return marks;
  }

  async function oneEach(callers: Submitters): Promise<void> {
    await eventually(
      "one job for each submit",
      async () => {
        const found = await stored();
        return [...found.values()].every((ids) => ids.length === 1);
      },
      20_000,
    );
    const found = await stored();
    for (const [mark, id] of callers.answers) {
      const ids = found.get(mark) ?? [];
      if (id === null) assert.ok(ids.length <= 1, `${mark} was refused and made ${ids.join(", ")}`);
      else assert.deepEqual(ids, [id], `${mark} was acknowledged as ${id}`);
    }
    await Promise.all([...cluster.nodes.values()].map((node) => node.idle()));
    const statuses = new Map((await cluster.everyJob()).map(({ job_id, status }) => [job_id, status]));
    for (const id of callers.answers.values()) if (id !== null) assert.equal(statuses.get(id), "completed");
  }

  function begin(name: string): Submitters {
    const callers = new Submitters(
      name,
      ["node-a", "node-c"].map((name) => cluster.url(name)),
    );
    atEnd(suite, () => callers.stop());
    callers.start(12);
    return callers;
  }

  const acknowledgedBy = (callers: Submitters, name: string): number =>
    [...callers.answers.values()].filter((id) => id !== null && birthplace(id) === name).length;

  async function more(callers: Submitters, name: string): Promise<void> {
    const before = acknowledgedBy(callers, name);
    await eventually(`${name} to take jobs`, async () => acknowledgedBy(callers, name) > before + 10 || null);
  }

  it("is one job, nothing that was acknowledged is lost, and no caller sees it: killed with -9", async (t) => {
    const callers = begin("killed");
    for (let round = 0; round < 2; round++) {
      await more(callers, "node-b");
      await cluster.kill("node-b");
      await cluster.start("node-b");
    }
    await more(callers, "node-b");
    await callers.stop();
    await oneEach(callers);
    t.diagnostic(`${callers.answers.size} submits over 2 kills, slowest ${Math.round(callers.slowestMs)} ms`);
    assert.deepEqual(callers.refusals, []);
  });

  it("is one job, nothing that was acknowledged is lost, and no caller sees it: stopped and let go on", async (t) => {
    const callers = begin("stopped");
    for (let round = 0; round < 2; round++) {
      await more(callers, "node-b");
      cluster.node("node-b").signal("SIGSTOP");
      const before = acknowledgedBy(callers, "node-a");
      await eventually(
        "those who were given to it to be given to others",
        async () => acknowledgedBy(callers, "node-a") > before + 30 || null,
      );
      cluster.node("node-b").signal("SIGCONT");
    }
    await more(callers, "node-b");
    await callers.stop();
    await oneEach(callers);
    t.diagnostic(`${callers.answers.size} submits over 2 stops, slowest ${Math.round(callers.slowestMs)} ms`);
    assert.deepEqual(callers.refusals, []);
    assert.ok(callers.slowestMs < 4_000);
  });
});

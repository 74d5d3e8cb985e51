/** What people see of a cluster whose leader is killed: the journal, the history, the stream and many jobs at once. */

import assert from "node:assert/strict";
import { it } from "node:test";
import { BatonClient, type LiveEvent } from "../../../src/client/baton-client.ts";
import { LONG_LEASES, QUICK, TestCluster } from "../../support/cluster.ts";
import { atEnd } from "../../support/node-cleanup.ts";
import { eventually } from "../../support/wait.ts";

const FAILED = 2_500;

it("a killed leader, a stale write and thousands of failed jobs are seen and dealt with through the other node", async (t) => {
  const cluster = await TestCluster.open(t, {
    // No term ends by itself, however busy the machine is with all that fails here.
    settings: { ...QUICK, ...LONG_LEASES, AGENTS__LEASE: "1500ms" },
  });
  await cluster.startAll("ada", "bob");
  const { name, node, epoch } = await cluster.leader();
  const other = cluster.node(name === "ada" ? "bob" : "ada");
  const client = new BatonClient({ urls: [node.url, other.url] });
  atEnd(t, () => client.close());

  // Somebody looks at the page the whole time.
  const events: LiveEvent[] = [];
  const leaving = new AbortController();
  const looking = (async () => {
    for await (const event of client.cluster.live({ signal: leaving.signal })) events.push(event);
  })();
  atEnd(t, async () => {
    leaving.abort();
    await looking;
  });
  await eventually("the first overview", () => events.some(({ event }) => event === "overview"));

  // An agent whose lease has run out comes with its result all the same.
  const { job_id: job } = await client.submit({ task: "agent-work", allow_unknown: true });
  const agent = { agent: "late", capabilities: ["agent-work"] };
  const lease = await client.controller.lease({ ...agent, max_tasks: 1, timeout_ms: 10_000 });
  const [leased] = lease!.tasks;
  assert.equal(leased!.job_id, job);
  await eventually("the job to be taken back", async () => (await client.job(job)).status === "queued");
  const refused = await client.controller
    .results([
      {
        agent: "late",
        lease_id: lease!.lease_id,
        leader_epoch: lease!.leader_epoch,
        job_id: job,
        job_epoch: leased!.job_epoch,
        status: "succeeded",
        result: 1,
      },
    ])
    .catch((error: unknown) => [{ accepted: false, error }]);
  assert.equal(refused[0]!.accepted, false);

  await Promise.all(
    Array.from({ length: FAILED / 500 }, () =>
      client.submitMany(
        Array.from({ length: 500 }, () => ({ task: "work", payload: null, max_attempts: 1, queue: "bad" })),
      ),
    ),
  );
  const failed = async (): Promise<number> =>
    (await client.queues()).queues.find((queue) => queue.name === "bad")?.counts.failed ?? 0;
  await eventually("all of them to fail", async () => (await failed()) === FAILED, 60_000);

  // The leader dies without a word.
  node.signal("SIGKILL");
  await node.exited;
  cluster.forget(name);
  const survivor = other.client;
  const history = await eventually("the end of its term", async () => {
    const { terms, refused: writes } = await survivor.cluster.leaderHistory({ role: "scheduler" });
    const over = terms.find((term) => term.epoch === epoch);
    // Who follows it says at once that it does, and a little later why.
    return over?.reason === `${name} died` ? { terms, over, writes } : null;
  });
  assert.equal(history.over.node_id, name);
  assert.ok(history.terms[0]!.epoch > epoch && history.terms[0]!.ended_at === null, "somebody leads since");
  assert.ok(history.over.ended_at! >= history.over.started_at);

  const example = history.writes.examples.find(({ job_id }) => job_id === job);
  assert.ok(history.writes.count >= 1 && example, JSON.stringify(history.writes));
  assert.equal(example.carried_epoch, leased!.job_epoch);
  assert.ok(example.current_epoch! > leased!.job_epoch);
  const story = await survivor.timeline(job);
  assert.ok(story.events.some(({ what }) => what === "write_refused"));
  assert.equal(story.runs.length, 1);
  assert.ok(["crashed", "interrupted"].includes(story.runs[0]!.outcome));
  assert.equal(story.runs[0]!.worker, "late");

  // All that failed goes back, page by page, after it was counted.
  const { groups, looked_at } = await survivor.cluster.failures({ queue: "bad" });
  assert.deepEqual([groups.length, groups[0]!.count, looked_at], [1, FAILED, FAILED]);
  const filter = { queue: "bad", error_message: groups[0]!.message };
  for (const dry_run of [true, false]) {
    const sum = { matched: 0, changed: 0, pages: 0 };
    for (let cursor: string | null = null, first = true; first || cursor !== null; first = false) {
      const page = await survivor.cluster.bulk({
        action: "retry",
        filter,
        dry_run,
        limit: 250,
        ...(cursor !== null && { cursor }),
      });
      sum.matched += page.matched;
      sum.changed += page.changed;
      sum.pages++;
      cursor = page.next_cursor;
    }
    assert.deepEqual(sum, { matched: FAILED, changed: dry_run ? 0 : FAILED, pages: 11 });
  }

  // And the page has gone on, at the node that is left.
  const dead = await eventually("the news of its death", async () => {
    return events.find((event) => event.event === "journal" && event.entry.kind === "node.dead") ?? null;
  });
  assert.equal(dead.event === "journal" && dead.entry.subject, name);
  await eventually("an overview with the next leader", () => {
    const last = events.findLast((event) => event.event === "overview");
    return last?.event === "overview" && last.overview.leader?.node_id === (name === "ada" ? "bob" : "ada");
  });
});

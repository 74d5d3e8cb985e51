import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { byKey } from "../../../../src/core/placement-rules.ts";
import type { PeerHandler } from "../../../../src/transport/transport.ts";
import { type PeerApp, type PeerApps, peerApps, type PeerAppsOptions } from "../../../support/peer-apps.ts";

const ABC = ["node-a", "node-b", "node-c"];

function memory(options: Partial<PeerAppsOptions> = {}): Promise<PeerApps> {
  return peerApps({ names: ABC, way: "memory", ...options });
}

async function submit(at: PeerApp, body: object = { task: "hello" }, headers: Record<string, string> = {}) {
  const answer = await at.app.inject({ method: "POST", url: "/jobs", payload: body, headers });
  return { status: answer.statusCode, body: answer.json(), headers: answer.headers };
}

const owner = (id: string): string => id.slice(0, -37);
const stored = (cluster: PeerApps): string[] => cluster.nodes.flatMap(({ node }) => [...node.kept.keys()]);
const shares = (cluster: PeerApps): number[] => cluster.nodes.map(({ node }) => node.kept.size);

/** Breaks the first so many calls with jobs to a node, before or after they were carried out. */
function breaking(target: string, times: number, when: "before" | "after" | "refuses") {
  let left = times;
  return (name: string, handle: PeerHandler): PeerHandler =>
    async (request) => {
      const hit = name === target && request.path.startsWith("/jobs?") && left-- > 0;
      if (hit && when === "refuses") return { status: 503, body: JSON.stringify({ error: "DRAINING" }) };
      if (hit && when === "before") throw new Error("dies before");
      const reply = await handle(request);
      if (hit) throw new Error("dies after");
      return reply;
    };
}

describe("a new job", () => {
  it("goes to the next node in the order of names, whose name its id begins with", async () => {
    await using cluster = await memory({ strategy: "per-node" });
    const owners: string[] = [];
    for (let i = 0; i < 9; i++) {
      const { status, body } = await submit(cluster.nodes[0]!);
      assert.equal(status, 200);
      owners.push(owner(body.job_id));
    }
    const at = ABC.indexOf(owners[0]!);
    assert.deepEqual(
      owners,
      owners.map((_, i) => ABC[(at + i) % 3]),
    );
    assert.deepEqual(shares(cluster), [3, 3, 3]);
    for (const id of stored(cluster)) {
      const { node } = cluster.nodes.find(({ name }) => name === owner(id))!;
      assert.ok(node.kept.has(id), "it lies with the node that its id names");
    }
  });

  it("is answered to the caller by the node that keeps it, through the one that was asked", async () => {
    await using cluster = await memory({ strategy: "per-node" });
    cluster.see("node-a", { status: "draining" });
    cluster.see("node-c", { status: "draining" });
    const { status, body, headers } = await submit(cluster.nodes[0]!, { task: "hello", payload: { a: "é" } });
    assert.deepEqual([status, body.status], [200, "queued"]);
    assert.deepEqual([headers["x-baton-node"], headers["x-baton-via"]], ["node-b", "node-a"]);
    assert.equal(cluster.nodes[1]!.node.kept.get(body.job_id)!.job.payload, '{"a":"é"}');
    const { request } = cluster.nodes[0]!.sent[0]!;
    assert.match(request.path, /^\/jobs\?internal=1&/);
    assert.equal(request.body, '{"task":"hello","payload":{"a":"é"}}', "as it came");
  });

  it("is placed once: the node that gets it asks nobody else", async () => {
    await using cluster = await memory();
    for (let i = 0; i < 6; i++) await submit(cluster.nodes[0]!);
    const passedOn = (app: PeerApp): number =>
      app.sent.filter(({ request }) => request.path.startsWith("/jobs")).length;
    assert.deepEqual(cluster.nodes.map(passedOn), [4, 0, 0]);
  });

  it("of a batch goes with the whole batch to one node, all or none", async () => {
    await using cluster = await memory({ strategy: "per-node" });
    cluster.see("node-a", { status: "draining" });
    const batch = Array.from({ length: 5_000 }, (_, n) => ({ task: "hello", payload: n }));
    const { status, body } = await submit(cluster.nodes[0]!, batch);
    assert.equal(status, 200);
    assert.equal(new Set(body.map((each: { job_id: string }) => owner(each.job_id))).size, 1);
    const { node } = cluster.nodes.find(({ name }) => name === owner(body[0].job_id))!;
    assert.deepEqual(
      body.map((each: { job_id: string }) => node.kept.get(each.job_id)!.job.payload),
      batch.map(({ payload }) => String(payload)),
    );
    const refused = await submit(cluster.nodes[0]!, [{ task: "hello" }, { task: "picky" }]);
    assert.deepEqual([refused.status, refused.body.field], [400, "[1].payload"]);
    assert.equal(stored(cluster).length, 5_000);
  });

  it("that its target refuses for itself is refused to the caller, and placed nowhere else", async () => {
    await using cluster = await memory();
    cluster.see("node-a", { status: "draining" });
    for (let i = 0; i < 3; i++) {
      const { status, body } = await submit(cluster.nodes[0]!, { task: "picky" });
      assert.deepEqual([status, body.error, body.field], [400, "BAD_PAYLOAD", "payload"]);
    }
    assert.deepEqual(stored(cluster), []);
  });

  it("goes only to nodes that can run it, as long as there are any", async () => {
    await using cluster = await memory();
    cluster.see("node-b", { capabilities: ["hello", "rare"] });
    for (let i = 0; i < 4; i++) await submit(cluster.nodes[0]!, { task: "rare" });
    assert.deepEqual(shares(cluster), [0, 4, 0]);
    for (let i = 0; i < 6; i++) await submit(cluster.nodes[0]!, { task: "unheard-of" });
    assert.deepEqual(shares(cluster), [2, 6, 2]);
  });

  it("stays with the node that was asked when placement is local", async () => {
    await using cluster = await memory({ strategy: "local" });
    for (let i = 0; i < 4; i++) await submit(cluster.nodes[1]!);
    assert.deepEqual(shares(cluster), [0, 4, 0]);
  });
});

describe("a round that all nodes share", () => {
  it("gives everybody the same share, whoever is asked", async () => {
    await using cluster = await memory({ strategy: "global" });
    for (let i = 0; i < 90; i++) await submit(cluster.nodes[i % 3]!);
    assert.deepEqual(shares(cluster), [30, 30, 30]);
  });

  it("keeps its order for callers who ask one after the other, whoever is asked, also behind a crowd", async () => {
    await using cluster = await memory({ strategy: "global" });
    await Promise.all(Array.from({ length: 9 }, (_, n) => submit(cluster.nodes[n % 3]!)));
    for (let i = 0; i < 45; i++) await submit(cluster.nodes[i % 3]!); // what the crowd has left over
    const order: string[] = [];
    for (let i = 0; i < 30; i++) {
      const { body } = await submit(cluster.nodes[i % 3]!);
      order.push(owner(body.job_id));
    }
    const first = order.slice(0, 3);
    assert.deepEqual(first.toSorted(), ["node-a", "node-b", "node-c"]);
    order.forEach((name, turn) => assert.equal(name, first[turn % 3], order.join(" ")));
  });

  it("is asked for in batches by a busy node", async () => {
    await using cluster = await memory({ strategy: "global" });
    const busy = cluster.nodes[1]!;
    for (let i = 0; i < 30; i++) await Promise.all(Array.from({ length: 10 }, () => submit(busy)));
    const asked = busy.sent.filter(({ request }) => request.path.startsWith("/peer/placement/next")).length;
    assert.ok(asked > 0 && asked < 30, `${asked} questions for 300 jobs`);
    for (const share of shares(cluster)) assert.ok(share >= 90 && share <= 110, String(shares(cluster)));
  });

  it("is counted by each node alone while there is no leader, or it does not answer", async () => {
    await using cluster = await memory({ strategy: "global" });
    cluster.lead(null);
    for (let i = 0; i < 9; i++) await submit(cluster.nodes[1]!);
    assert.deepEqual(shares(cluster), [3, 3, 3]);
    cluster.lead("node-x");
    for (let i = 0; i < 9; i++) await submit(cluster.nodes[1]!);
    assert.deepEqual(shares(cluster), [6, 6, 6]);
  });
});

describe("a node that cannot take a job", () => {
  it("is passed over before it is tried, when that is known", async () => {
    await using cluster = await memory();
    cluster.see("node-b", { alive: false });
    cluster.see("node-c", { status: "draining" });
    for (let i = 0; i < 6; i++) await submit(cluster.nodes[0]!);
    assert.deepEqual(shares(cluster), [6, 0, 0]);
    assert.deepEqual(
      cluster.nodes[0]!.sent.filter(({ request }) => request.path.startsWith("/jobs")),
      [],
    );
  });

  it("is followed by the next one when it is not there", async () => {
    await using cluster = await memory({ strategy: "per-node" });
    await cluster.nodes[1]!.kill();
    for (let i = 0; i < 6; i++) assert.equal((await submit(cluster.nodes[0]!)).status, 200);
    assert.equal(stored(cluster).length, 6);
    assert.equal(cluster.nodes[1]!.node.kept.size, 0);
    assert.equal(cluster.nodes[0]!.retractions.size, 0, "it certainly has nothing");
  });

  it("is followed by the next one when it says 503", async () => {
    await using cluster = await memory({ strategy: "per-node", meddle: breaking("node-b", 99, "refuses") });
    for (let i = 0; i < 6; i++) assert.equal((await submit(cluster.nodes[0]!)).status, 200);
    assert.equal(stored(cluster).length, 6);
    assert.equal(cluster.nodes[0]!.retractions.size, 0);
  });

  it("leaves it to the node that was asked when all others cannot either", async () => {
    await using cluster = await memory();
    for (const other of cluster.nodes.slice(1)) await other.kill();
    for (let i = 0; i < 3; i++) {
      const { status, body } = await submit(cluster.nodes[0]!);
      assert.deepEqual([status, owner(body.job_id)], [200, "node-a"]);
    }
    cluster.nodes[0]!.node.health.draining = true;
    const { status, body } = await submit(cluster.nodes[0]!);
    assert.deepEqual([status, body.error], [503, "DRAINING"]);
  });
});

describe("S85: an answer that is lost", () => {
  const toB = { task: "hello", payload: { n: 1 } };
  /** Nobody else than node-b takes part at first, so that it is its turn. */
  async function lost(when: "before" | "after", times: number, then?: (cluster: PeerApps) => void) {
    const cluster = await memory({ strategy: "per-node", meddle: breaking("node-b", times, when) });
    cluster.see("node-a", { capabilities: [] });
    cluster.see("node-c", { capabilities: [] });
    then?.(cluster);
    return cluster;
  }

  for (const when of ["before", "after"] as const) {
    it(`is asked for again of the same node, which stores the job once (${when} it was stored)`, async () => {
      await using cluster = await lost(when, 2);
      const { status, body } = await submit(cluster.nodes[0]!, toB);
      assert.deepEqual([status, owner(body.job_id)], [200, "node-b"]);
      assert.deepEqual(stored(cluster), [body.job_id]);
      assert.equal(cluster.nodes[0]!.retractions.size, 0);
    });
  }

  it("is given up when the node dies; the job goes to the next one, and is taken back when the node returns", async () => {
    await using cluster = await lost("after", 1, (all) => {
      all.see("node-c", { capabilities: ["hello"] });
    });
    const [a, b, c] = cluster.nodes as [PeerApp, PeerApp, PeerApp];
    // Its turn may be after that of node-c.
    let answer = await (async () => {
      for (;;) {
        const dying = submit(a, toB);
        while (b.node.kept.size === 0 && c.node.kept.size === 0)
          await new Promise((turn) => setImmediate(turn));
        if (b.node.kept.size > 0) {
          cluster.see("node-b", { alive: false });
          return dying;
        }
        await dying;
        c.node.kept.clear();
      }
    })();
    assert.deepEqual([answer.status, owner(answer.body.job_id)], [200, "node-c"]);
    assert.equal(stored(cluster).length, 2, "for now there are two");
    assert.equal(a.retractions.size, 1);
    await a.retractions.deliver();
    assert.equal(a.retractions.size, 1, "nobody is told while it is away");
    cluster.see("node-b", { alive: true });
    await a.retractions.deliver();
    assert.deepEqual(stored(cluster), [answer.body.job_id]);
    assert.equal(a.retractions.size, 0);
  });

  it("is asked for by a node that starts, before it works", async () => {
    await using cluster = await memory({ strategy: "per-node" });
    const [a, b] = cluster.nodes as [PeerApp, PeerApp];
    const uuid = "0198c0de-0000-7000-8000-000000000000";
    const jobs = await b.node.jobs.submit([
      { id: `node-b-${uuid}` as never, task: "hello" },
      { task: "hello" },
    ]);
    cluster.see("node-b", { alive: false });
    await a.retractions.note(b.name, uuid, 1);
    await b.retractions.collect();
    assert.deepEqual(stored(cluster), [jobs[1]!.id]);
  });

  it("that comes too late stores nothing any more", async () => {
    await using cluster = await memory();
    const [a, b] = cluster.nodes as [PeerApp, PeerApp];
    const first = "0198c0de-0000-7000-8000-000000000000";
    const late = {
      from: a.name,
      method: "POST",
      path: `/jobs?internal=1&internal_first=${first}`,
      headers: { "content-type": "application/json", "x-baton-deadline-ms": "1000" },
      body: JSON.stringify(toB),
    } as const;
    await a.retractions.note(b.name, first, 1);
    await a.retractions.deliver();
    const reply = await b.requests.handle(late);
    assert.deepEqual([reply.status, JSON.parse(reply.body!).error], [504, "DEADLINE"]);
    assert.deepEqual(stored(cluster), []);
  });

  for (const [way, answeredBy] of Object.entries({
    "through a node": "peer",
    "at the node that has it": "itself",
  } as const)) {
    it(`keeps a job that was promised to another caller under the same key meanwhile, ${way}`, async () => {
      await using cluster = await memory({ strategy: "local" });
      const [a, b] = cluster.nodes as [PeerApp, PeerApp];
      const first = "0198c0de-0000-7000-8000-000000000000";
      const key = { "idempotency-key": "k" };
      const call = async (uuid: string) => {
        const { body } = await b.requests.handle({
          from: a.name,
          method: "POST",
          path: `/jobs?internal=1&internal_first=${uuid}`,
          headers: { "content-type": "application/json", ...key },
          body: JSON.stringify(toB),
        });
        return JSON.parse(body!);
      };
      await call(first);
      await call(first);
      const other =
        answeredBy === "peer" ? await call(first.replace("0000", "0001")) : (await submit(b, toB, key)).body;
      assert.equal(other.job_id, `node-b-${first}`);
      await a.retractions.note(b.name, first, 1);
      await a.retractions.deliver();
      assert.deepEqual(stored(cluster), [`node-b-${first}`]);
      assert.equal(a.retractions.size, 0);
      assert.ok(a.log.lines.some(({ message }) => message.includes("two nodes")));
    });
  }

  it("ends in an error when what was lost cannot be noted: two jobs would be worse", async () => {
    await using cluster = await lost("after", 1, (all) => all.see("node-b", {}));
    const [a] = cluster.nodes as [PeerApp];
    await a.retractionFile.stop();
    let calls = 0;
    const seen = cluster.nodes[1]!.node.kept;
    const answering = submit(a, toB);
    while (seen.size === 0) {
      assert.ok(calls++ < 100_000);
      await new Promise((turn) => setImmediate(turn));
    }
    cluster.see("node-b", { alive: false });
    const { status, body } = await answering;
    assert.deepEqual([status, body.error, body.outcome], [504, "DEADLINE", "unknown"]);
    assert.equal(stored(cluster).length, 1);
  });
});

describe("a job with a key", () => {
  it("goes to the node that its key decides, whichever node is asked, and is found there again", async () => {
    await using cluster = await memory();
    for (const key of ["order-1", "order-2", "order-3", "order-4"]) {
      const home = byKey(cluster.nodes, key)[0]!.name;
      const answers = [];
      for (const at of cluster.nodes) answers.push(await submit(at, { task: "hello", idempotency_key: key }));
      answers.push(await submit(cluster.nodes[0]!, { task: "hello" }, { "idempotency-key": key }));
      assert.deepEqual(
        answers.map(({ body }) => body.job_id),
        Array(4).fill(answers[0]!.body.job_id),
      );
      assert.equal(owner(answers[0]!.body.job_id), home);
    }
    assert.equal(stored(cluster).length, 4);
  });

  it("goes to the same next node from everywhere while its own is away", async () => {
    await using cluster = await memory();
    const [home, next] = byKey(cluster.nodes, "order-1") as [PeerApp, PeerApp];
    await home.kill();
    cluster.see(home.name, { alive: false });
    for (const at of cluster.nodes) {
      if (at === home) continue;
      const { body } = await submit(at, { task: "hello", idempotency_key: "order-1" });
      assert.equal(owner(body.job_id), next.name);
    }
    assert.equal(stored(cluster).length, 1);
  });
});

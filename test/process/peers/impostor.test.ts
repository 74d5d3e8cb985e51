/**
 * An impostor without the cluster secret listens at the address of a dead node. It refuses the upgrade to the mesh in
 * every way that a server or a proxy might, and answers plain HTTP as a member would: with an admin token, with votes,
 * with jobs that it claims to have stored. It must get nothing out of that.
 */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { it } from "node:test";
import { digestOf, newToken } from "../../../src/access/token-service.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import type { Scope } from "../../support/node-cleanup.ts";
import { roleOf } from "../../support/cluster.ts";
import { listedFile, TEST_SECRET } from "../../support/host-cluster.ts";
import { birthplace, PeerCluster, QUICK_PEERS, statuses } from "../../support/peer-cluster.ts";
import { eventually } from "../../support/wait.ts";
import { ask } from "../access/callers.ts";

const PAYLOAD = "a payload that only members may read";
/** Each answer several times: by then credentials were compared, and heartbeats and elections have come by. */
const UPGRADES = 24;
/** Two leases: without the impostor's votes nobody is elected in that time. */
const ALONE_MS = 3_000;

/** What it answers to the upgrade; null closes the connection. */
const UPGRADE_ANSWERS = [
  "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
  "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
  "HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n",
  "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n",
  "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
  null,
];

class Impostor {
  readonly token = newToken();
  /** Requests other than the upgrade, as `POST /path body`. */
  readonly requests: string[] = [];
  upgrades = 0;
  #url = "";

  async listen(t: Scope, name: string, url: string): Promise<void> {
    this.#url = url;
    const server = createServer((request, response) => void this.#answer(name, request, response));
    server.on("upgrade", (_request: IncomingMessage, socket: Duplex) => {
      const answer = UPGRADE_ANSWERS[this.upgrades++ % UPGRADE_ANSWERS.length]!;
      socket.on("error", () => {});
      if (answer === null) socket.destroy();
      else socket.end(answer);
    });
    server.listen(Number(new URL(url).port), "127.0.0.1");
    await once(server, "listening");
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
  }

  async #answer(name: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const path = request.url!;
    this.requests.push(`${request.method} ${path} ${body}`);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(this.#lie(name, path, body)));
  }

  #lie(name: string, path: string, body: string): object {
    const node = { name, incarnation: "the-impostor" };
    if (path.startsWith("/peer/access/digest")) return { digest: `of ${systemClock.now()}` };
    if (path.startsWith("/peer/access")) {
      const now = systemClock.now();
      const credential = {
        id: "impostor",
        kind: "token",
        name: "impostor",
        permission: "admin",
        secret: digestOf(this.token),
        owner: null,
        createdAt: now,
        createdBy: "node:impostor",
        expiresAt: null,
        lastUsedAt: null,
        removedAt: null,
        version: 1,
        node: name,
      };
      return { credentials: [credential], next: null };
    }
    if (path.startsWith("/peer/heartbeat")) {
      // The presence of the member that asks, as if it were its own.
      const asked = JSON.parse(body) as { info: object };
      return { ...asked, node, address: this.#url, info: { ...asked.info, url: this.#url }, peers: null };
    }
    if (path.startsWith("/peer/vote") || path.startsWith("/peer/coordinator"))
      return { node, answer: path.includes("vote") ? "granted" : "acknowledged", floor: 0 };
    if (path.startsWith("/peer/election"))
      return { node, votes: true, willing: true, stands: false, epoch: 0, peers: null };
    if (path.startsWith("/jobs"))
      return { job_id: `${name}-01890000-0000-7000-8000-000000000000`, status: "queued" };
    return { node };
  }
}

it("an impostor at the address of a dead node gets no token accepted, no job, no payload, no vote and no heartbeat", async (t) => {
  const cluster = await PeerCluster.open(t, {
    file: listedFile,
    settings: { ...QUICK_PEERS, HTTP__HOST: "0.0.0.0", SECRET: TEST_SECRET },
  });
  await cluster.startAll();
  const { name: leader } = await cluster.leader();
  const [dead, other] = cluster.names.filter((name) => name !== leader) as [string, string];
  await cluster.kill(dead);
  const impostor = new Impostor();
  await impostor.listen(t, dead, cluster.url(dead));
  const submitted: string[] = [];
  while (impostor.upgrades < UPGRADES) {
    for (const node of cluster.nodes.values()) {
      const { status, body } = await node.post("/jobs", {
        task: "echo",
        payload: PAYLOAD,
        allow_unknown: true,
      });
      assert.equal(status, 200, JSON.stringify(body));
      submitted.push((body as { job_id: string }).job_id);
      assert.equal((await ask(node.url, "/tokens", { token: impostor.token })).status, 401);
      // Straight to the member, as the impostor would call: a heartbeat, a vote and a credential that nobody signed.
      for (const path of ["/peer/heartbeat", "/peer/vote", "/peer/access", "/peer/join"])
        assert.notEqual((await node.post(path, { from: { name: dead, incarnation: "i" } })).status, 200);
    }
    await systemClock.sleep(100);
  }
  assert.deepEqual(impostor.requests, [], "it was sent nothing but the handshake of the mesh");
  assert.deepEqual([...new Set(submitted.map(birthplace))].sort(), [leader, other].sort());
  for (const node of cluster.nodes.values())
    // No heartbeat of the impostor counts.
    await eventually(`${dead} to be dead`, async () =>
      (await statuses(node))[dead] === "active" ? null : true,
    );
  const stored = new Set((await cluster.everyJob()).map(({ job_id }) => job_id));
  assert.deepEqual(
    submitted.filter((id) => !stored.has(id)),
    [],
    "no job was lost to the impostor",
  );

  // With one of three members left, the vote of the impostor would be the majority.
  await cluster.kill(leader);
  const survivor = cluster.node(other);
  const { upgrades } = impostor;
  const alone = systemClock.monotonic() + ALONE_MS;
  while (impostor.upgrades < upgrades + UPGRADE_ANSWERS.length || systemClock.monotonic() < alone) {
    assert.notEqual((await roleOf(survivor))?.leader_id, other, "it has not been elected");
    await systemClock.sleep(100);
  }
  assert.deepEqual(impostor.requests, []);
  assert.equal((await ask(survivor.url, "/tokens", { token: impostor.token })).status, 401);
});

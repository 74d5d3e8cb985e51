/** The seed's manager API over real HTTP, and a cluster of peers on real sockets. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { DEFAULT_SETTINGS, type BullySettings } from "../../../../../src/peers/bully/peer-state.ts";
import type { PeerSource } from "../../../../../src/peers/bully/peer-list.ts";
import { Elector } from "../../../../../src/leadership/elector.ts";
import { JoinServer, openPeers, type BullyCoordination } from "../../../../../src/peers/open-peers.ts";
import { hasCode } from "../../../../../src/core/errors.ts";
import { systemClock } from "../../../../../src/platform/clock.ts";
import { silentLog } from "../../../../../src/platform/log.ts";
import { SYSTEM } from "../../../../../src/platform/platform.ts";
import { fakePlatform } from "../../../../support/fake-platform.ts";
import { systemRandom } from "../../../../../src/platform/random.ts";
import { MeshTransport } from "../../../../../src/transport/mesh/mesh-transport.ts";
import { lifecycleStress } from "../../../../support/lifecycle-stress.ts";
import { candidate, OWN_INFO } from "../../../../support/lock-candidates.ts";
import { QUICK } from "../../../../support/lock-peers.ts";
import { MemoryTerms } from "../../../../support/lock-terms.ts";
import { SECRET } from "../../../../support/mesh-world.ts";
import { ROLE } from "../../../../support/lock-world.ts";
import { eventually } from "../../../../support/wait.ts";

const USER = "cluster_user";
const PASS = "cluster_pass";
/** Short, and long enough for a machine that does other things too. */
const CALM: Partial<BullySettings> = {
  ...QUICK,
  leaseMs: 3_000,
  heartbeatTimeoutMs: 1_000,
  deadAfterMs: 5_000,
};

interface Machine {
  readonly name: string;
  readonly coordination: BullyCoordination;
  readonly server: JoinServer;
  readonly elector: Elector;
  /** Its process ends without a word. */
  kill(): Promise<void>;
}

class Machines implements AsyncDisposable {
  readonly #dir = mkdtempSync(join(tmpdir(), "baton-join-"));
  readonly #machines: Machine[] = [];

  async start(
    name: string,
    source: PeerSource | ((url: string) => PeerSource),
    settings: Partial<BullySettings> = CALM,
    port = 0,
  ): Promise<Machine> {
    const identity = candidate(name, systemRandom.uuid());
    const transport = new MeshTransport({ ...SYSTEM, identity, log: silentLog }, [SECRET]);
    let coordination: BullyCoordination | null = null;
    const url = (): string | null => (server.running ? server.url : null);
    const server: JoinServer = new JoinServer(
      { clock: systemClock, log: silentLog },
      {
        host: "127.0.0.1",
        port,
        user: USER,
        pass: PASS,
        coordination: late(() => coordination!),
        attach: (server) => transport.attach(server),
      },
    );
    await server.start();
    const platform = fakePlatform({ ...SYSTEM, identity });
    coordination = openPeers(platform, {
      info: () => ({ ...OWN_INFO, url: url() }),
      transport,
      watchPeer: (address, signal, name) => transport.watch(address, signal, name),
      dir: join(this.#dir, name),
      terms: new MemoryTerms(),
      source: typeof source === "function" ? source(server.url) : source,
      settings,
    });
    transport.serve((request) => coordination.handle(request));
    await transport.start();
    await coordination.start();
    const elector = new Elector({
      lock: coordination.lock(ROLE),
      identity,
      role: ROLE,
      clock: systemClock,
      random: systemRandom,
      settings: electionOf({ ...DEFAULT_SETTINGS, ...settings }),
    });
    await elector.start();
    const machine: Machine = {
      name,
      coordination,
      server,
      elector,
      kill: async () => {
        await Promise.all([server.stop(), transport.stop()]);
      },
    };
    this.#machines.push(machine);
    return machine;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const machine of this.#machines) {
      await machine.elector.stop();
      await machine.coordination.stop();
      await machine.kill();
    }
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

function electionOf({ leaseMs }: BullySettings) {
  return { leaseMs, renewMs: leaseMs / 5, marginMs: leaseMs * 0.3, retryMs: leaseMs / 10 };
}

function late(coordination: () => BullyCoordination): BullyCoordination {
  return new Proxy({} as BullyCoordination, {
    get: (_, key) => {
      const target = coordination();
      const value: unknown = target?.[key as keyof BullyCoordination];
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

interface Sent {
  readonly body?: string;
  readonly credentials?: string | null;
  readonly method?: string;
}

async function send(machine: { server: JoinServer }, path: string, sent: Sent = {}) {
  const { body = "", credentials = `${USER}:${PASS}`, method = "POST" } = sent;
  const headers: Record<string, string> =
    credentials === null ? {} : { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` };
  const reply = await fetch(`${machine.server.url}${path}`, {
    method,
    headers,
    ...(method === "GET" ? {} : { body }),
  });
  return { status: reply.status, text: await reply.text() };
}

const FOUNDS: PeerSource = { kind: "join", addresses: [] };

describe("the join server", () => {
  test("answers a join as the seed does, from any node, and the same join again", async () => {
    await using machines = new Machines();
    const one = await machines.start("node1", FOUNDS);
    await eventually("it leads", () => one.elector.held() !== null);
    const two = await machines.start("node2", { kind: "join", addresses: [one.server.url] });
    await eventually(
      "it joined",
      () => two.coordination.peers.names().length === 2 && two.coordination.leader() !== null,
    );
    const addr = new URL(two.server.url).host;
    const expected = {
      peers: { node1: new URL(one.server.url).host, node2: addr },
      leader: "node1",
    };
    for (const machine of [one, two, one]) {
      const { status, text } = await send(machine, "/join", { body: JSON.stringify({ id: "node2", addr }) });
      assert.equal(status, 200, text);
      assert.deepEqual(JSON.parse(text), expected);
    }
  });

  test("refuses a join in the seed's way: no credentials, wrong ones, and bodies of bad shape are a 400", async () => {
    await using machines = new Machines();
    const one = await machines.start("node1", FOUNDS);
    await eventually("it leads", () => one.elector.held() !== null);
    const good = JSON.stringify({ id: "node9", addr: "127.0.0.1:1" });
    for (const credentials of [
      null,
      "",
      ":",
      "cluster_user:",
      `${USER}:wrong`,
      `wrong:${PASS}`,
      `${USER}:${PASS}x`,
    ]) {
      for (const path of ["/join", "/remove", "/election", "/coordinator"]) {
        const { status, text } = await send(one, path, { body: good, credentials });
        assert.equal(status, 400, `${path} with ${credentials}`);
        assert.doesNotMatch(text, /cluster_pass/);
      }
    }
    const bad: Record<string, string> = {
      "not json": "BAD_JSON",
      "": "BAD_JSON",
      "[]": "body",
      "{}": "body.id",
      '{"id":"node9"}': "body.addr",
      '{"addr":"x:1"}': "body.id",
      '{"id":"node9","addr":"x:1","more":"y"}': "body",
      '{"id":9,"addr":"x:1"}': "body.id",
      '{"id":"../x","addr":"x:1"}': "body.id",
      '{"id":"node9","addr":"file:///etc/passwd"}': "body.addr",
      '{"id":"node9","addr":"http://user:pass@x:1"}': "body.addr",
      '{"__proto__":{"id":"node9"},"addr":"x:1"}': "body.id",
    };
    for (const [body, names] of Object.entries(bad)) {
      const { status, text } = await send(one, "/join", { body });
      assert.equal(status, 400, body);
      assert.ok(text.includes(names), `${body} answered ${text}`);
    }
    assert.deepEqual(one.coordination.peers.names(), ["node1"]);
  });

  test("removes on the leader only; a follower names the leader and its url", async () => {
    await using machines = new Machines();
    const one = await machines.start("node1", FOUNDS);
    const through = { kind: "join", addresses: [one.server.url] } as const;
    const two = await machines.start("node2", through);
    const three = await machines.start("node3", through);
    await eventually("three", () =>
      [one, two, three].every(
        ({ coordination }) => coordination.peers.names().length === 3 && coordination.leader() !== null,
      ),
    );
    const body = JSON.stringify({ id: "node3" });
    const refused = await send(two, "/remove", { body });
    assert.equal(refused.status, 409);
    const { error, leader, leader_url } = JSON.parse(refused.text) as Record<string, string>;
    assert.deepEqual([error, leader, leader_url], ["NOT_LEADER", "node1", one.server.url]);
    for (const body of ["{}", "[]", "x", '{"id":7}']) {
      assert.equal((await send(one, "/remove", { body })).status, 400, body);
    }
    assert.deepEqual(await send(one, "/remove", { body }), { status: 200, text: "" });
    assert.deepEqual(await send(one, "/remove", { body: '{"id":"nobody"}' }), { status: 200, text: "" });
    await eventually("it is gone", () => two.coordination.peers.names().join() === "node1,node2");
  });

  test("an election or a coordinator message is a hint that changes no leader", async () => {
    await using machines = new Machines();
    const one = await machines.start("node1", FOUNDS);
    await eventually("it leads", () => one.elector.held() !== null);
    assert.deepEqual(await send(one, "/election", { body: '{"id":"node0"}' }), { status: 200, text: "" });
    assert.deepEqual(await send(one, "/coordinator", { body: '{"id":"zzz"}' }), { status: 200, text: "" });
    for (const body of ["", "{}", '{"id":1}']) {
      assert.equal((await send(one, "/coordinator", { body })).status, 400, body);
    }
    assert.equal(one.coordination.leader()?.leader, "node1");
  });

  test("its heartbeat needs no credentials, and is a 503 while the node goes down", async () => {
    await using machines = new Machines();
    const one = await machines.start("node1", FOUNDS);
    const ask = () => send(one, "/heartbeat", { method: "GET", credentials: null });
    assert.deepEqual(await ask(), { status: 200, text: "" });
    one.server.goDown();
    assert.deepEqual(await ask(), { status: 503, text: "" });
  });

  test("survives bodies without end, garbage on the socket, and paths that are not there", async () => {
    await using machines = new Machines();
    const one = await machines.start("node1", FOUNDS);
    assert.equal((await send(one, "/join", { body: "x".repeat(300_000) })).status, 413);
    assert.equal((await send(one, "/nothing")).status, 404);
    const socket = connect(Number(new URL(one.server.url).port), "127.0.0.1");
    socket.end("\0\0\0 this is no HTTP \r\n\r\n");
    socket.resume();
    await once(socket, "close");
    assert.equal((await send(one, "/heartbeat", { method: "GET" })).status, 200);
  });

  test("an empty user or password is a mistake, not an open door", () => {
    const options = { host: "127.0.0.1", port: 0 };
    const coordination = {} as BullyCoordination;
    for (const [user, pass, field] of [
      ["", "pass", "user"],
      ["user", "", "pass"],
    ] as const) {
      assert.throws(
        () =>
          new JoinServer({ clock: systemClock, log: silentLog }, { ...options, user, pass, coordination }),
        (error) => hasCode(error, "BAD_CONFIG") && error.details.field === field,
      );
    }
  });

  test("a port that is taken is told with the setting", async () => {
    await using machines = new Machines();
    const one = await machines.start("node1", FOUNDS);
    const port = Number(new URL(one.server.url).port);
    await assert.rejects(
      machines.start("node2", FOUNDS, CALM, port),
      (error) => hasCode(error, "BAD_CONFIG") && error.details.field === "manager.addr",
    );
  });

  lifecycleStress("the join server", async () => {
    const server = new JoinServer(
      { clock: systemClock, log: silentLog },
      {
        host: "127.0.0.1",
        port: 0,
        user: USER,
        pass: PASS,
        coordination: { running: true } as BullyCoordination,
      },
    );
    return {
      service: server,
      works: async () => {
        assert.equal((await send({ server }, "/heartbeat", { method: "GET" })).status, 200);
      },
    };
  });
});

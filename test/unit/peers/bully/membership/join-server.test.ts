/** The manager API over real HTTP. Nodes that have nothing but real sockets: test/process/peers/join-lifecycle. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { JoinServer, type BullyCoordination } from "../../../../../src/peers/open-peers.ts";
import { hasCode } from "../../../../../src/core/errors.ts";
import { systemClock } from "../../../../../src/platform/clock.ts";
import { silentLog } from "../../../../../src/platform/log.ts";
import { lifecycleStress } from "../../../../support/lifecycle-stress.ts";
import { urlOf } from "../../../../support/lock-peers.ts";
import { FOUNDS, LASTING, PeerTown, type Member } from "../../../../support/peer-town.ts";
import { eventually } from "../../../../support/wait.ts";

const USER = "cluster_user";
const PASS = "cluster_pass";
const OPTIONS = { host: "127.0.0.1", port: 0, user: USER, pass: PASS };

function serverOf(coordination: BullyCoordination, options: Partial<typeof OPTIONS> = {}): JoinServer {
  return new JoinServer({ clock: systemClock, log: silentLog }, { ...OPTIONS, ...options, coordination });
}

interface Machine extends Member {
  readonly server: JoinServer;
}

/** Nodes in memory whose manager API is on real sockets. */
class Machines extends PeerTown {
  readonly #servers: JoinServer[] = [];

  constructor() {
    super({}, LASTING);
  }

  async machine(name: string, through?: string): Promise<Machine> {
    const member = await (through === undefined ? this.start(name, FOUNDS) : this.join(name, through));
    const server = serverOf(member.coordination);
    this.#servers.push(server);
    await server.start();
    return { ...member, server };
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()));
    await super[Symbol.asyncDispose]();
  }
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

describe("the join server", () => {
  test("answers a join with all join servers and the leader, from any node, and the same join again", async () => {
    await using machines = new Machines();
    const one = await machines.machine("node1");
    await eventually("it leads", () => one.elector.held() !== null);
    const two = await machines.machine("node2", "node1");
    await machines.agreed("node1", "node2");
    const expected = { peers: { node1: "node1:1", node2: "node2:1" }, leader: "node1" };
    for (const machine of [one, two, one]) {
      const { status, text } = await send(machine, "/join", {
        body: JSON.stringify({ id: "node2", addr: "node2:1" }),
      });
      assert.equal(status, 200, text);
      assert.deepEqual(JSON.parse(text), expected);
    }
  });

  test("refuses a join with 400: no credentials, wrong ones, and bodies of bad shape", async () => {
    await using machines = new Machines();
    const one = await machines.machine("node1");
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
    const one = await machines.machine("node1");
    const two = await machines.machine("node2", "node1");
    await machines.join("node3", "node1");
    await machines.agreed("node1", "node2", "node3");
    const body = JSON.stringify({ id: "node3" });
    const refused = await send(two, "/remove", { body });
    assert.equal(refused.status, 409);
    const { error, leader, leader_url } = JSON.parse(refused.text) as Record<string, string>;
    assert.deepEqual([error, leader, leader_url], ["NOT_LEADER", "node1", urlOf("node1")]);
    for (const body of ["{}", "[]", "x", '{"id":7}']) {
      assert.equal((await send(one, "/remove", { body })).status, 400, body);
    }
    assert.deepEqual(await send(one, "/remove", { body }), { status: 200, text: "" });
    assert.deepEqual(await send(one, "/remove", { body: '{"id":"nobody"}' }), { status: 200, text: "" });
    await eventually("it is gone", () => two.coordination.peers.names().join() === "node1,node2");
  });

  test("an election or a coordinator message is a hint that changes no leader", async () => {
    await using machines = new Machines();
    const one = await machines.machine("node1");
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
    const one = await machines.machine("node1");
    const ask = () => send(one, "/heartbeat", { method: "GET", credentials: null });
    assert.deepEqual(await ask(), { status: 200, text: "" });
    one.server.goDown();
    assert.deepEqual(await ask(), { status: 503, text: "" });
  });

  test("survives bodies without end, garbage on the socket, and paths that are not there", async () => {
    await using machines = new Machines();
    const one = await machines.machine("node1");
    assert.equal((await send(one, "/join", { body: "x".repeat(300_000) })).status, 413);
    assert.equal((await send(one, "/nothing")).status, 404);
    const socket = connect(Number(new URL(one.server.url).port), "127.0.0.1");
    socket.end("\0\0\0 this is no HTTP \r\n\r\n");
    socket.resume();
    await once(socket, "close");
    assert.equal((await send(one, "/heartbeat", { method: "GET" })).status, 200);
  });

  test("an empty user or password is a mistake, not an open door", () => {
    const coordination = {} as BullyCoordination;
    for (const [user, pass, field] of [
      ["", "pass", "user"],
      ["user", "", "pass"],
    ] as const) {
      assert.throws(
        () => serverOf(coordination, { user, pass }),
        (error) => hasCode(error, "BAD_CONFIG") && error.details.field === field,
      );
    }
  });

  test("a port that is taken is told with the setting", async () => {
    await using first = serverOf({} as BullyCoordination);
    await first.start();
    const second = serverOf({} as BullyCoordination, { port: Number(new URL(first.url).port) });
    await assert.rejects(
      second.start(),
      (error) => hasCode(error, "BAD_CONFIG") && error.details.field === "manager.addr",
    );
  });

  lifecycleStress("the join server", async () => {
    const server = serverOf({ running: true } as BullyCoordination);
    return {
      service: server,
      works: async () => {
        assert.equal((await send({ server }, "/heartbeat", { method: "GET" })).status, 200);
      },
    };
  });
});

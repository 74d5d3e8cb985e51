/** The way to a cluster whose nodes answer as they are told to, on a clock that moves when it is told to. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  ClusterConnection,
  type ClusterCall,
  type Repeat,
} from "../../../../src/client/connection/cluster-connection.ts";
import type { Answer, Call, Connection } from "../../../../src/client/connection/connection.ts";
import { CallError } from "../../../../src/client/client-error.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { seededRandom } from "../../../support/seeded-random.ts";

type Told = { status: number; body?: object; retryAfterMs?: number } | "refuses" | "breaks" | "hangs";

const A = "http://10.0.0.1";
const B = "http://10.0.0.2";
const C = "http://10.0.0.3";

const OK: Told = { status: 200, body: {} };
const NO_LEADER: Told = { status: 503, body: { error: "NO_LEADER", message: "" }, retryAfterMs: 1_000 };
const SHARED: Told = {
  status: 200,
  body: { store: { shared: true }, cluster: { coordination: "postgres" } },
};
const PEERS: Told = { status: 200, body: { store: { shared: false }, cluster: { coordination: "bully" } } };

class World {
  readonly clock = new ManualClock();
  readonly asked: string[] = [];
  readonly closed: string[] = [];
  /** What each node answers, by its address; the last word stands. */
  readonly says: Record<string, Told[]> = {};
  /** What they answer to `GET /cluster/nodes` and `GET /status`. */
  listed: string[] = [];
  status: Told = SHARED;

  open(urls: readonly string[], options: { discover?: boolean; retry?: boolean } = {}): ClusterConnection {
    const connect = (url: string): Connection => this.#connect(url);
    const { discover = false, retry = true } = options;
    const platform = { clock: this.clock, random: seededRandom(1) };
    return new ClusterConnection(platform, { urls, connect, discover, retry });
  }

  #connect(url: string): Connection {
    return {
      call: (call, timeoutMs) => this.#answer(url, call, timeoutMs),
      open: () => Promise.reject(new Error("not here")),
      close: async () => void this.closed.push(url),
    };
  }

  async #answer(url: string, { path }: Call, timeoutMs: number): Promise<Answer> {
    const told = this.#told(url, path);
    if (told === "refuses") throw new CallError("UNREACHABLE", `${url} refuses`);
    if (told === "breaks") throw new CallError("UNREACHABLE", `${url} broke`, { maybeDone: true });
    if (told === "hangs") {
      await this.clock.sleep(timeoutMs);
      throw new CallError("TIMEOUT", `${url} is silent`, { maybeDone: true });
    }
    const { status, body = {}, retryAfterMs = null } = told;
    return { status, body: JSON.stringify(body), retryAfterMs };
  }

  #told(url: string, path: string): Told {
    if (path === "/cluster/nodes") {
      const nodes = this.listed.map((each) => ({ url: each, status: "active", roles: ["gateway"] }));
      return { status: 200, body: { nodes } };
    }
    if (path === "/status") return this.status;
    this.asked.push(url);
    const words = this.says[url] ?? [OK];
    return words.length > 1 ? words.shift()! : words[0]!;
  }

  /** Lets the time pass until it is settled. */
  async settled<T>(work: Promise<T>): Promise<T> {
    let over = false;
    work.then(
      () => (over = true),
      () => (over = true),
    );
    for (let turn = 0; turn < 10_000 && !over; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      if (!over) await this.clock.advance(10);
    }
    return work;
  }
}

function request(repeat: Repeat, fields: Partial<ClusterCall> = {}): ClusterCall {
  const method = repeat === "always" ? "GET" : "POST";
  return { method, path: "/x", timeoutMs: 30_000, repeat, leader: false, ...fields };
}

async function failure(work: Promise<unknown>): Promise<CallError> {
  const error = await work.then(
    () => assert.fail("it went through"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof CallError, String(error));
  return error;
}

describe("a call to a cluster", () => {
  it("keeps to the node that works", async () => {
    const world = new World();
    const connection = world.open([A, B]);
    world.says[A] = ["refuses"];
    for (let n = 0; n < 3; n++) await connection.call(request("always"));
    assert.deepEqual(world.asked, [A, B, B, B]);
    assert.equal(connection.nodes.list.current, B);
  });

  it("goes to the next when it was not sent, whatever it is", async () => {
    const world = new World();
    world.says[A] = ["refuses"];
    assert.equal((await world.open([A, B]).call(request("never"))).status, 200);
    assert.deepEqual(world.asked, [A, B]);
  });

  it("goes to the next when the answer is lost, if it may be made again", async () => {
    for (const repeat of ["always", "keyed"] as const) {
      const world = new World();
      world.says[A] = ["breaks"];
      assert.equal((await world.open([A, B]).call(request(repeat))).status, 200);
      assert.deepEqual(world.asked, [A, B], repeat);
    }
  });

  it("says that nobody knows when the answer is lost and it must not be made again", async () => {
    for (const lost of ["breaks", "hangs"] as const) {
      const world = new World();
      world.says[A] = [lost];
      const error = await failure(world.settled(world.open([A, B]).call(request("never"))));
      assert.deepEqual([error.code, error.outcome, error.maybeDone], ["OUTCOME_UNKNOWN", "unknown", true]);
      assert.equal((error.cause as CallError).code, lost === "breaks" ? "UNREACHABLE" : "TIMEOUT");
      assert.deepEqual(world.asked, [A], lost);
    }
    const world = new World();
    world.says[A] = [{ status: 503, body: { error: "STORE_UNAVAILABLE", message: "away" } }];
    const error = await failure(world.open([A, B]).call(request("never")));
    assert.deepEqual([error.code, error.outcome, world.asked], ["STORE_UNAVAILABLE", "unknown", [A]]);
  });

  it("does not repeat a keyed submit where every node has a store of its own", async () => {
    const world = new World();
    world.says[A] = ["breaks"];
    world.status = PEERS;
    const error = await failure(world.open([A, B]).call(request("keyed")));
    assert.deepEqual([error.code, error.outcome, world.asked], ["OUTCOME_UNKNOWN", "unknown", [A]]);
    world.asked.length = 0;
    world.says[A] = ["refuses"];
    assert.equal((await world.open([A, B]).call(request("keyed"))).status, 200, "it was certainly not sent");
  });

  it("says of a refusal after a lost answer that the first try may have been the reason", async () => {
    const world = new World();
    world.says[A] = ["breaks"];
    world.says[B] = [{ status: 404, body: { error: "NOT_FOUND", message: "there is no such job" } }];
    const error = await failure(world.open([A, B]).call(request("always", { method: "DELETE" })));
    assert.deepEqual([error.code, error.status, error.outcome], ["NOT_FOUND", 404, "unknown"]);
  });

  it("leaves a node that hangs while there are others, with more time for each next one", async () => {
    const world = new World();
    world.says[A] = ["hangs"];
    world.says[B] = ["hangs"];
    const startedAt = world.clock.monotonic();
    await world.settled(world.open([A, B, C]).call(request("always")));
    assert.deepEqual(world.asked, [A, B, C]);
    const tookMs = world.clock.monotonic() - startedAt;
    assert.ok(tookMs >= 15_000 && tookMs < 15_500, `${tookMs} ms`);
  });

  it("waits while nobody leads, as long as it was asked to and no longer than the caller does", async () => {
    const world = new World();
    world.says[A] = [NO_LEADER, NO_LEADER, OK];
    const startedAt = world.clock.monotonic();
    await world.settled(world.open([A]).call(request("never")));
    const tookMs = world.clock.monotonic() - startedAt;
    assert.ok(tookMs >= 2_000 && tookMs <= 3_200, `${tookMs} ms`);
    world.says[A] = [NO_LEADER];
    const error = await failure(world.settled(world.open([A]).call(request("never", { timeoutMs: 2_500 }))));
    assert.deepEqual([error.code, error.status, error.outcome], ["NO_LEADER", 503, "none"]);
  });

  it("pauses before it asks anybody else when a queue is full", async () => {
    const world = new World();
    world.says[A] = [{ status: 429, body: { error: "TOO_MANY_REQUESTS", message: "" }, retryAfterMs: 1_000 }];
    const startedAt = world.clock.monotonic();
    await world.settled(world.open([A, B]).call(request("never")));
    assert.deepEqual(world.asked, [A, B]);
    assert.ok(world.clock.monotonic() - startedAt >= 1_000);
  });

  it("tells at once when nobody was ever there, and waits for a cluster that was", async () => {
    const world = new World();
    world.says[A] = ["refuses"];
    world.says[B] = ["refuses"];
    const connection = world.open([A, B]);
    const error = await failure(connection.call(request("always")));
    assert.deepEqual([error.code, error.outcome, world.asked.length], ["UNREACHABLE", "none", 2]);
    world.says[A] = [OK];
    await connection.call(request("always"));
    world.says[A] = ["refuses", "refuses", "refuses", OK];
    await world.settled(connection.call(request("always")));
  });

  it("follows a standby to the leader, and goes straight there the next time", async () => {
    const world = new World();
    world.says[A] = [{ status: 409, body: { error: "NOT_LEADER", leader_url: `${C}/` } }];
    const connection = world.open([A], { discover: true });
    await connection.call(request("never", { leader: true }));
    await connection.call(request("never", { leader: true }));
    assert.deepEqual(world.asked, [A, C, C]);
    world.asked.length = 0;
    const error = await failure(
      world.settled(world.open([A]).call(request("never", { leader: true, timeoutMs: 500 }))),
    );
    assert.equal(error.code, "NOT_LEADER");
    assert.ok(!world.asked.includes(C), "who does not discover stays with what was given");
  });

  it("learns of other nodes beside its work, and lets go of those that are gone", async () => {
    const world = new World();
    world.listed = [A, B, C];
    const connection = world.open([A], { discover: true });
    await connection.call(request("always"));
    await connection.nodes.learn();
    assert.deepEqual(connection.nodes.list.known, [A, B, C]);
    world.says[A] = ["breaks"];
    await connection.call(request("always"));
    assert.equal(connection.nodes.list.current, B);
    assert.deepEqual(world.open([A]).nodes.list.known, [A]);
    await connection.close();
    assert.deepEqual(world.closed.sort(), [A, B]);
  });

  it("without retries tells what became of the first try", async () => {
    const world = new World();
    world.says[A] = [NO_LEADER, "breaks"];
    const connection = world.open([A, B], { retry: false });
    assert.equal((await connection.call(request("always"))).status, 503);
    const error = await failure(connection.call(request("never")));
    assert.deepEqual([error.code, error.maybeDone, world.asked], ["UNREACHABLE", true, [A, A]]);
  });

  it("ends with the client, also while it waits", async () => {
    const world = new World();
    world.says[A] = [NO_LEADER];
    const connection = world.open([A]);
    const waiting = failure(connection.call(request("never")));
    await new Promise((resolve) => setImmediate(resolve));
    await connection.close();
    assert.equal((await waiting).code, "CLOSED");
    assert.equal((await failure(connection.call(request("always")))).code, "CLOSED");
    assert.equal(world.clock.waiting, 0);
  });
});

/** An etcd that is away for longer than everybody's lease: who lives. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hasCode } from "../../../src/core/errors.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { EtcdServer } from "../../support/etcd-server.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import { EtcdCluster } from "../../support/lock-etcd.ts";
import { until } from "../../support/lock-admitted-election.ts";
import { ROLE } from "../../support/lock-world.ts";

const SETTINGS = { heartbeatMs: 500, deadAfterMs: 2_000, forgetAfterMs: 3_600_000 };

const FAULTS: Readonly<Record<string, (server: EtcdServer, awayMs: number) => Promise<void>>> = {
  "a pause": async (server, awayMs) => {
    server.pause();
    await systemClock.sleep(awayMs);
    server.resume();
  },
  "kill -9 and a restart": async (server, awayMs) => {
    await server.halt();
    await systemClock.sleep(awayMs);
    await server.relaunch();
  },
  "kill -9 and a restart with nothing left": async (server, awayMs) => {
    await server.halt();
    await systemClock.sleep(awayMs);
    await server.relaunch("empty");
  },
};

/** A node whose watch is broken: nothing but its own next heartbeat tells it of the end of its life. */
class Unwatched {
  readonly #server: EtcdServer;
  readonly #cluster: EtcdCluster;
  readonly #incarnation = systemRandom.uuid();
  #lease = "1";

  constructor(server: EtcdServer, cluster: EtcdCluster) {
    this.#server = server;
    this.#cluster = cluster;
  }

  async beat(): Promise<void> {
    const server = this.#server;
    const kept = await server.call<{ result?: { TTL?: string } }>("lease/keepalive", { ID: this.#lease });
    if (kept.result?.TTL === undefined) {
      const body = { TTL: String(SETTINGS.deadAfterMs / 1_000) };
      this.#lease = (await server.call<{ ID: string }>("lease/grant", body)).ID;
      await server.put(this.#cluster.key("name", "cyd"), this.#incarnation, this.#lease);
    }
    const entry = { name: "cyd", status: "active", at: systemClock.now(), recovered: false, info: {} };
    await server.put(this.#cluster.key("node", this.#incarnation), JSON.stringify(entry));
  }
}

void describe("an etcd that is away for longer than everybody's lease", () => {
  for (const [fault, happens] of Object.entries(FAULTS)) {
    void test(`${fault}: nobody is taken for dead, and everybody goes on`, async (t) => {
      const server = await EtcdServer.start();
      t.after(() => server.stop());
      await using cluster = new EtcdCluster(server);
      const identity = candidate("ada", systemRandom.uuid());
      const ada = await cluster.start("ada", { identity, settings: SETTINGS });
      const bob = await cluster.start("bob", { settings: SETTINGS });
      const cyd = new Unwatched(server, cluster);
      let silent = false;
      const lock = ada.lock(ROLE);
      let term = await granted(lock, identity, 60_000);
      const looks = async (ms: number): Promise<number> => {
        let answered = 0;
        for (const end = systemClock.monotonic() + ms; systemClock.monotonic() < end;) {
          if (!silent) await cyd.beat();
          try {
            assert.deepEqual(await ada.membership.findDead(term), []);
            answered += 1;
          } catch (error) {
            if (hasCode(error, "STALE_EPOCH")) term = (await lock.acquire(identity, 60_000)) ?? term;
            else assert.ok(hasCode(error, "STORE_UNAVAILABLE"), String(error));
          }
          await systemClock.sleep(50);
        }
        return answered;
      };
      await looks(SETTINGS.deadAfterMs + 100); // missing lives would count by now
      silent = true;
      const during = looks(4_500);
      await happens(server, 1.4 * SETTINGS.deadAfterMs);
      await systemClock.sleep(700); // until its next heartbeat
      silent = false;
      await during;
      assert.ok((await looks(2 * SETTINGS.deadAfterMs)) > 10);
      await bob.membership.setStatus("active");
      await until("bob is heard", () =>
        ada.membership.nodes().some((node) => node.name === "bob" && node.status === "active" && node.alive),
      );
    });
  }
});

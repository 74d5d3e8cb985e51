/** Redis or etcd elects, and PostgreSQL keeps the members: a leader finds the dead under a term that the other server granted. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Coordination } from "../../../src/leadership/coordination.ts";
import { openCoordination } from "../../../src/leadership/open-coordination.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import type { Store } from "../../../src/store/store.ts";
import { EtcdServer } from "../../support/etcd-server.ts";
import { candidate, granted, OWN_INFO } from "../../support/lock-candidates.ts";
import { TransactionPooler } from "../../support/lock-pooler.ts";
import { ROLE } from "../../support/lock-world.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { RedisServer } from "../../support/redis-server.ts";
import { eventually } from "../../support/wait.ts";

const SETTINGS = { heartbeatMs: 50, deadAfterMs: 1_500, forgetAfterMs: 3_600_000 };
const TTL_MS = 60_000;

let postgres: PostgresServer;
let redis: RedisServer;
let etcd: EtcdServer;
let database: string;
let store: Store;
before(async () => {
  [postgres, redis, etcd] = await Promise.all([
    PostgresServer.start(),
    RedisServer.start(),
    EtcdServer.start(),
  ]);
  database = await postgres.createDatabase();
  store = await openPostgresStore({ url: database, schema: "baton", clock: systemClock });
});
after(async () => {
  await store.close();
  await Promise.all([postgres.stop(), redis.stop(), etcd.stop()]);
});

async function joined(kind: "redis" | "etcd", name: string, url = database) {
  const identity = candidate(name, systemRandom.uuid());
  const coordination = await openCoordination({
    kind,
    url,
    terms: store.terms,
    server: { url: kind === "redis" ? redis.url() : etcd.url(), prefix: "elsewhere" },
    identity,
    info: () => OWN_INFO,
    clock: systemClock,
    random: systemRandom,
    settings: SETTINGS,
  });
  await coordination.start();
  return { identity, coordination, [Symbol.asyncDispose]: () => coordination.stop() };
}

const names = ({ membership }: Coordination): string[] =>
  membership.nodes().flatMap(({ name, alive }) => (alive ? [name] : []));

for (const kind of ["redis", "etcd"] as const) {
  void describe(`elections on ${kind}`, () => {
    it("nodes see each other in the database, and a leader's term is the fence of who is dead", async () => {
      await using ada = await joined(kind, "ada");
      await using bob = await joined(kind, "bob");
      assert.equal(ada.coordination.kind, kind);
      await eventually("both see both", () =>
        [ada, bob].every(({ coordination }) => names(coordination).join() === "ada,bob"),
      );
      const { membership } = ada.coordination;
      const term = await granted(ada.coordination.lock(ROLE), ada.identity, TTL_MS);
      assert.deepEqual(await membership.findDead(term), []);
      await ada.coordination.lock(ROLE).release(term);
      const next = await granted(bob.coordination.lock(ROLE), bob.identity, TTL_MS);
      assert.ok(next.epoch > term.epoch);
      await assert.rejects(membership.findDead(term), { code: "STALE_EPOCH" });
      assert.deepEqual(await bob.coordination.membership.findDead(next), []);
      await bob.coordination.lock(ROLE).release(next);
    });

    it("while the server is away nobody is taken for dead, and the list goes on", async () => {
      await using ada = await joined(kind, "ada");
      await using bob = await joined(kind, "bob");
      const server = kind === "redis" ? redis : etcd;
      const term = await granted(ada.coordination.lock(ROLE), ada.identity, TTL_MS);
      server.pause();
      try {
        await bob.coordination.membership.setStatus("draining");
        await eventually("ada sees it", () =>
          ada.coordination.membership.nodes().some(({ status }) => status === "draining"),
        );
        for (let ms = 0; ms < SETTINGS.deadAfterMs; ms += 100) {
          assert.deepEqual(await ada.coordination.membership.findDead(term), []);
          await systemClock.sleep(100);
        }
      } finally {
        server.resume();
      }
    });

    it("behind a transaction pooler deaths show by heartbeats only, and operators are told", async () => {
      await using pooler = await TransactionPooler.start(database, { sessions: 2, order: "round" });
      await using ada = await joined(kind, "ada", pooler.url);
      assert.match(ada.coordination.notes().join(), /missing heartbeats/);
      const [row] = await postgres.query("SELECT locked FROM baton.node WHERE name = 'ada'", database);
      assert.equal(row!["locked"], false);
    });
  });
}

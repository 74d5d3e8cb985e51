/** The list of nodes in Redis. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Term } from "../../../src/core/leadership/term.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { candidate } from "../../support/lock-candidates.ts";
import { RedisCluster } from "../../support/lock-redis.ts";
import { ROLE } from "../../support/lock-world.ts";
import { RedisServer } from "../../support/redis-server.ts";
import { eventually } from "./membership.ts";
import { goOn, leader, QUICK, type NodesWorld } from "./nodes-world.ts";
import { registeredNodesContract } from "./registered-nodes.ts";

let server: RedisServer;
before(async () => {
  server = await RedisServer.start();
});
after(() => server.stop());

function redisNodes() {
  const cluster = new RedisCluster(server);
  const list = cluster.key("nodes");
  const row = ({ incarnation }: { readonly incarnation: string }): string =>
    cluster.key("nodes", incarnation);

  const leaveEntry: NodesWorld["leaveEntry"] = async (name, fields = {}) => {
    const { status = "active", unseen = false, heartbeatAgoMs = 0 } = fields;
    const identity = candidate(name, systemRandom.uuid());
    const [seconds, micros] = await server.command<string[]>("TIME");
    const now = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
    const entry = {
      name,
      status,
      at: String(now - heartbeatAgoMs),
      beats: "1",
      life: unseen ? "" : `life-of-${identity.incarnation}`,
      recovered: "0",
      info: '{"hostname":"there","version":"9.9.9"}',
    };
    await server.command("SADD", list, identity.incarnation);
    await server.command("HSET", row(identity), ...Object.entries(entry).flat());
    return identity;
  };

  return {
    cluster,
    leaveEntry,
    entry: async (who) => {
      const fields = ["status", "recovered", "beats", "request"];
      const [status, recovered, beats, request = null] = await server.command<(string | null)[]>(
        "HMGET",
        row(who),
        ...fields,
      );
      return status ? { status, recovered: recovered === "1", heartbeat: Number(beats), request } : null;
    },
    write: (who, fields) => server.command("HSET", row(who), ...Object.entries(fields).flat()),
    remove: async (who) => {
      await server.command("SREM", list, who.incarnation);
      await server.command("DEL", row(who));
    },
    loseList: () => server.command("DEL", list),
    count: () => server.command<number>("SCARD", list),
    displace: async (who) => {
      const other = await leaveEntry(who.name, { unseen: true });
      await server.command("HSET", row(who), "status", "dead");
      return other;
    },
    endConnections: async ({ incarnation }) => {
      const clients = await server.command<string>("CLIENT", "LIST");
      for (const line of clients.split("\n").filter((each) => each.includes(`name=baton/${incarnation}/`)))
        await server.command("CLIENT", "KILL", "ID", /^id=(\d+)/.exec(line)![1]!);
    },
    // Uptime is told in whole seconds.
    settled: (forMs) =>
      eventually("a server that has run for a while", async () => {
        const info = await server.command<string>("INFO", "server");
        return Number(/uptime_in_seconds:(\d+)/.exec(info)![1]) * 1_000 >= forMs;
      }),
  } satisfies NodesWorld;
}

registeredNodesContract("redis", async () => redisNodes());

void test("what an older version did not say of itself, and what nobody can read, is shown as nothing", async () => {
  const { cluster, leaveEntry } = redisNodes();
  await using _ = cluster;
  const bob = await leaveEntry("bob");
  const cyd = await leaveEntry("cyd");
  await server.command("HSET", cluster.key("nodes", cyd.incarnation), "info", "][");
  const ada = await cluster.start("ada", { settings: QUICK });
  const [, shown, odd] = ada.membership.nodes();
  assert.deepEqual([shown?.incarnation, shown?.hostname, shown?.load.cpu], [bob.incarnation, "there", 0]);
  assert.deepEqual([odd?.hostname, odd?.roles, odd?.url], ["unknown", [], null]);
});

for (const persistent of [true, false]) {
  void test(`a restart of Redis ${persistent ? "with" : "without"} its data makes nobody dead, and everybody goes on`, async () => {
    const own = await RedisServer.start({ persistent });
    try {
      await using cluster = new RedisCluster(own);
      const settings = { ...QUICK, deadAfterMs: 1_500 };
      const { coordination: ada, term: before } = await leader(cluster, { settings });
      const bob = await cluster.start("bob", { settings });
      await eventually("bob is seen", () => ada.membership.nodes().length === 2);
      await own.halt("kill");
      await own.relaunch();
      const who = candidate("leader", before.incarnation);
      const term = persistent ? before : await eventualTerm(() => ada.lock(ROLE).acquire(who, 60_000));
      if (!persistent) assert.ok(term.epoch > before.epoch);
      await goOn(ada, term, bob);
    } finally {
      await own.stop();
    }
  });
}

async function eventualTerm(ask: () => Promise<Term | null>): Promise<Term> {
  let term: Term | null = null;
  await eventually("a term", async () => (term = await ask().catch(() => null)) !== null);
  return term!;
}

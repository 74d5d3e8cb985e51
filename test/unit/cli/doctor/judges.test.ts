import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Judgement } from "../../../../src/cli/doctor/findings.ts";
import { judgeClocks, readClock } from "../../../../src/cli/doctor/clocks.ts";
import { judgeEtcd } from "../../../../src/cli/doctor/etcd.ts";
import {
  judgeDirectory,
  judgeExposure,
  judgeOpenFiles,
  judgeRuntime,
  judgeSecretFiles,
} from "../../../../src/cli/doctor/machine.ts";
import { judgeCluster, judgeReach, judgeSettings } from "../../../../src/cli/doctor/nodes.ts";
import { judgePostgres, type PostgresFacts } from "../../../../src/cli/doctor/postgres.ts";
import { judgeRedis } from "../../../../src/cli/doctor/redis.ts";
import { columns } from "../../../support/columns.ts";

/** How bad each is, in their order; everything that is not well says what to do. */
function verdicts(found: readonly Judgement[]): string {
  for (const { verdict, remedy, message } of found) {
    assert.equal(remedy !== null || verdict === "ok" || verdict === "skipped", true, message);
  }
  return found.map(({ verdict }) => verdict).join(" ");
}

describe("the machine", () => {
  it("needs a Node that is new enough", () => {
    assert.equal(verdicts(judgeRuntime("24.16.0")), "ok");
    assert.equal(verdicts(judgeRuntime("v26.0.0")), "ok");
    assert.equal(verdicts(judgeRuntime("24.15.9")), "failed");
    assert.equal(verdicts(judgeRuntime("20.1.0")), "failed");
  });

  it("needs room for connections", () => {
    const limits = [null, "unlimited", 65_536, 1_024, 64] as const;
    const found = limits.map((limit) => verdicts(judgeOpenFiles(limit)));
    assert.deepEqual(found, ["skipped", "ok", "ok", "warning", "failed"]);
  });

  const well = {
    path: "/d",
    exists: true,
    writable: true,
    mode: 0o40700,
    freeBytes: 50e9,
    totalBytes: 100e9,
    network: null,
  };

  it("needs a directory of its own with room on a local disk", () => {
    assert.equal(verdicts(judgeDirectory(well)), "ok");
    assert.equal(verdicts(judgeDirectory({ ...well, exists: false, mode: null })), "ok");
    assert.equal(verdicts(judgeDirectory({ ...well, writable: false })), "failed");
    assert.equal(verdicts(judgeDirectory({ ...well, mode: 0o40755 })), "warning");
    assert.equal(verdicts(judgeDirectory({ ...well, network: "NFS" })), "warning");
    assert.equal(verdicts(judgeDirectory({ ...well, freeBytes: 1e9 })), "warning");
    assert.equal(verdicts(judgeDirectory({ ...well, freeBytes: 3e9 })), "warning", "3 % of the disk");
    assert.equal(verdicts(judgeDirectory({ ...well, freeBytes: 100e6 })), "failed");
    const small = { ...well, freeBytes: 1.5e9, totalBytes: 2e9 };
    assert.equal(verdicts(judgeDirectory(small)), "ok", "a small disk that is mostly free");
  });
});

describe("clocks", () => {
  const reading = (name: string, offsetMs: number, uncertainMs = 2) => ({ name, offsetMs, uncertainMs });

  it("are read to within half of the quickest round trip", async () => {
    const took = [400, 20, 100];
    let now = 1_000;
    const read = (): Promise<number> => {
      const tookMs = took.shift()!;
      now += tookMs;
      return Promise.resolve(now - tookMs / 2 + 500);
    };
    const found = await readClock("a", { now: () => now, monotonic: () => now }, read);
    assert.deepEqual(found, { name: "a", offsetMs: 500, uncertainMs: 10 });
  });

  it("that agree are told with how sure that is", () => {
    const [found] = judgeClocks([reading("a", 3), reading("b", -2)]);
    assert.equal(found!.verdict, "ok");
    assert.match(found!.message, /^a, b and this machine agree within 5ms \(± 2ms\)$/);
    assert.equal(verdicts(judgeClocks([])), "skipped");
  });

  it("that are off are named, compared with the others", () => {
    const found = judgeClocks([reading("a", 0), reading("b", 2_000), reading("c", 5)]);
    assert.equal(verdicts(found), "warning");
    assert.match(found[0]!.message, /^the clock of b is 2\.0s ahead of the others/);
    assert.equal(verdicts(judgeClocks([reading("a", 0), reading("b", -25_000), reading("c", 5)])), "failed");
  });

  it("of the nodes are well when only this machine's is not", () => {
    const found = judgeClocks([reading("a", 60_000), reading("b", 60_001)]);
    assert.equal(verdicts(found), "warning");
    assert.match(found[0]!.message, /^the clock of this machine is 1m behind the others/);
  });

  it("are not blamed for what a slow way explains", () => {
    assert.equal(verdicts(judgeClocks([reading("a", 900, 800)])), "ok");
    assert.equal(verdicts(judgeClocks([reading("a", 2_000, 100)])), "warning");
  });
});

describe("PostgreSQL", () => {
  const settings = {
    fsync: "on",
    full_page_writes: "on",
    synchronous_commit: "on",
    max_connections: "100",
    superuser_reserved_connections: "3",
    reserved_connections: "0",
    autovacuum: "on",
    track_counts: "on",
    default_transaction_read_only: "off",
  };
  const well: PostgresFacts = {
    version: 180_004,
    user: "baton",
    superuser: false,
    inRecovery: false,
    settings,
    otherSessions: 5,
    roleLimit: null,
    databaseLimit: null,
    pooled: false,
    longTransactions: [],
    schemaOwner: "baton",
    mayCreate: false,
    bloated: [],
  };
  const needs = { nodes: 3, connections: 10, schema: "baton" };
  const judged = (over: Partial<PostgresFacts>, more: Record<string, string> = {}): readonly Judgement[] =>
    judgePostgres({ ...well, ...over, settings: { ...settings, ...more } }, needs);

  it("is well", () => {
    const [found] = judged({});
    assert.deepEqual([found!.verdict, found!.message.startsWith("PostgreSQL 18.4: ")], ["ok", true]);
  });

  it("must keep what it has promised", () => {
    for (const name of ["fsync", "full_page_writes", "synchronous_commit"]) {
      const found = judged({}, { [name]: "off" });
      assert.equal(verdicts(found), "failed");
      assert.ok(found[0]!.message.startsWith(`${name} is off`));
      assert.ok(found[0]!.remedy!.startsWith(`ALTER SYSTEM SET ${name} = on;`));
    }
  });

  it("must have room for all nodes", () => {
    assert.equal(verdicts(judged({}, { max_connections: "45" })), "failed");
    assert.equal(verdicts(judged({ otherSessions: 60 })), "warning");
    assert.equal(verdicts(judged({ roleLimit: 40 })), "failed");
    assert.equal(verdicts(judged({ databaseLimit: 40 })), "failed");
    assert.equal(verdicts(judged({ roleLimit: 60 })), "ok");
    assert.match(judged({}, { max_connections: "45" })[0]!.remedy!, /max_connections = 100/);
  });

  it("must be one that can be written, and new enough", () => {
    assert.equal(verdicts(judged({ inRecovery: true })), "failed");
    assert.equal(verdicts(judged({}, { default_transaction_read_only: "on" })), "failed");
    assert.equal(verdicts(judged({ version: 140_010 })), "failed");
  });

  it("must not cut off who waits, nor let one statement wait for ever behind a pooler", () => {
    assert.equal(verdicts(judged({}, { idle_session_timeout: "60000" })), "warning");
    assert.equal(verdicts(judged({}, { transaction_timeout: "5000" })), "warning");
    assert.equal(verdicts(judged({}, { statement_timeout: "500" })), "warning");
    assert.equal(verdicts(judged({}, { statement_timeout: "15000" })), "ok");
    assert.equal(verdicts(judged({ pooled: true })), "warning warning");
    assert.equal(verdicts(judged({ pooled: true }, { statement_timeout: "15000" })), "warning");
  });

  it("must be able to clean up", () => {
    assert.equal(verdicts(judged({}, { autovacuum: "off" })), "failed");
    const longTransactions = [{ who: "pid 7 (psql)", ageMs: 3_600_000, remedy: "end it" }];
    const [found] = judged({ longTransactions });
    assert.deepEqual([found!.verdict, found!.remedy], ["warning", "end it"]);
    assert.match(found!.message, /^pid 7 \(psql\) is open for 1h/);
    assert.equal(verdicts(judged({ bloated: [{ table: "baton.live", dead: 1e6, live: 10 }] })), "warning");
  });

  it("must let the user make or change its schema", () => {
    assert.equal(verdicts(judged({ schemaOwner: null })), "failed");
    assert.match(
      judged({ schemaOwner: null, mayCreate: true })[0]!.message,
      /the schema baton is made by the first node/,
    );
    assert.equal(verdicts(judged({ schemaOwner: "other" })), "warning");
    assert.equal(verdicts(judged({ schemaOwner: "other", superuser: true })), "ok");
  });
});

describe("Redis and etcd", () => {
  const info = {
    redis_version: "7.0.15",
    role: "master",
    maxmemory: "0",
    maxmemory_policy: "noeviction",
    aof_enabled: "0",
  };
  const judged = (over: Record<string, string>, idleTimeoutSeconds: number | null = 0): string =>
    verdicts(judgeRedis({ info: { ...info, ...over }, idleTimeoutSeconds }));

  it("Redis must not throw away single keys", () => {
    assert.equal(judged({}), "ok");
    assert.equal(judged({ maxmemory_policy: "allkeys-lru" }), "warning");
    assert.equal(judged({ maxmemory_policy: "allkeys-lru", maxmemory: "1000000" }), "failed");
    assert.equal(judged({ maxmemory: "1000", used_memory: "950" }), "warning");
  });

  it("Redis must be a primary, new enough, and take writes", () => {
    assert.equal(judged({ role: "slave" }), "failed");
    assert.equal(judged({ redis_version: "6.0.16" }), "failed");
    assert.equal(judged({ redis_version: "6.2.0" }), "ok");
    assert.equal(judged({ rdb_last_bgsave_status: "err" }), "failed");
    assert.equal(judged({}, 30), "warning");
    assert.equal(judged({}, null), "ok");
  });

  it("etcd must have its members", () => {
    const up = (endpoint: string) => ({ endpoint, version: "3.5.9", healthy: true, reason: null });
    const down = (endpoint: string) => ({
      endpoint,
      version: null,
      healthy: false,
      reason: "does not answer",
    });
    assert.equal(verdicts(judgeEtcd([up("a")])), "ok");
    assert.equal(verdicts(judgeEtcd([up("a"), up("b"), up("c")])), "ok");
    assert.equal(verdicts(judgeEtcd([up("a"), up("b"), down("c")])), "warning");
    assert.equal(verdicts(judgeEtcd([down("a")])), "failed");
    assert.equal(verdicts(judgeEtcd([up("a"), up("b")])), "warning");
    assert.equal(verdicts(judgeEtcd([{ ...up("a"), version: "3.3.1" }])), "failed");
  });
});

describe("the nodes", () => {
  const node = (name: string, over: object = {}) => ({
    name,
    alive: true,
    status: "active",
    version: "0.1.0",
    url: `http://${name}`,
    fromHere: { ok: true, reason: null },
    answersAnybody: false,
    reach: [],
    ...over,
  });
  const reach = (to: string, ok: boolean) => ({
    node: to,
    ok,
    latency_ms: ok ? 3 : null,
    reason: ok ? null : "no route",
  });

  it("must reach each other", () => {
    const pair = [node("a", { reach: [reach("b", true)] }), node("b", { reach: [reach("a", true)] })];
    assert.deepEqual(columns(judgeReach(pair), "verdict", "message"), [
      ["ok", "2 nodes can be reached from here, and each other (2 ways, the slowest 3ms)"],
    ]);
    const cut = [node("a", { reach: [reach("b", false)] }), node("b", { reach: [reach("a", true)] })];
    const [found] = judgeReach(cut);
    assert.deepEqual([found!.verdict, found!.message], ["failed", "a does not reach b (no route)"]);
  });

  it("that are dead are not asked for", () => {
    const nodes = [node("a", { reach: [reach("b", false)] }), node("b", { alive: false })];
    assert.equal(verdicts(judgeReach(nodes)), "ok");
  });

  it("need an address, and may be out of reach from here", () => {
    assert.equal(verdicts(judgeReach([node("a", { url: null, fromHere: null })])), "warning");
    assert.equal(
      verdicts(judgeReach([node("a", { fromHere: { ok: false, reason: "ECONNREFUSED" } })])),
      "warning",
    );
  });

  it("must not answer others without a token", () => {
    const open = (url: string) => judgeReach([node("a", { url, answersAnybody: true })]);
    assert.equal(verdicts(open("http://127.0.0.1:8420")), "ok");
    assert.equal(verdicts(open("http://[::1]:8420")), "ok");
    assert.equal(verdicts(open("http://10.0.0.1:8420")), "failed");
  });

  const cluster = { formed: true, minimum_nodes: 1, scheduler_leader: "a", alerts: [], notes: [] };

  it("must have a leader and one version", () => {
    const nodes = [node("a"), node("b")];
    assert.equal(verdicts(judgeCluster({ ...cluster, nodes })), "ok");
    assert.equal(verdicts(judgeCluster({ ...cluster, nodes, scheduler_leader: null })), "failed");
    assert.equal(
      verdicts(judgeCluster({ ...cluster, nodes, formed: false, scheduler_leader: null })),
      "failed",
    );
    assert.equal(
      verdicts(judgeCluster({ ...cluster, nodes: [node("a"), node("b", { version: "0.2.0" })] })),
      "warning",
    );
    assert.equal(
      verdicts(judgeCluster({ ...cluster, nodes: [node("a"), node("b", { status: "dead", alive: false })] })),
      "warning",
    );
    const alerts = [
      { code: "backlog_old", severity: "critical", message: "old", remedy: "more workers" } as const,
    ];
    assert.equal(verdicts(judgeCluster({ ...cluster, nodes, alerts })), "failed");
  });

  it("must agree on what the cluster is", () => {
    const settings = (name: string, lease: number, port: number) => ({
      node: name,
      settings: [
        { path: "leader.lease", value: lease },
        { path: "http.port", value: port },
      ],
    });
    assert.equal(verdicts(judgeSettings([settings("a", 5_000, 1), settings("b", 5_000, 2)])), "ok");
    const [found] = judgeSettings([settings("a", 5_000, 1), settings("b", 9_000, 2)]);
    assert.deepEqual([found!.verdict, found!.message], ["warning", "leader.lease is 5000 on a; 9000 on b"]);
    assert.equal(verdicts(judgeSettings([settings("a", 1, 1)])), "skipped");
  });
});

describe("secrets", () => {
  it("are for their owner alone", () => {
    const file = (mode: number | null) => [{ path: "s", holds: "cluster.secret", mode }];
    assert.equal(verdicts(judgeSecretFiles([])), "ok");
    assert.equal(verdicts(judgeSecretFiles(file(0o100600))), "ok");
    assert.equal(verdicts(judgeSecretFiles(file(0o100640))), "warning");
    assert.equal(verdicts(judgeSecretFiles(file(0o100644))), "failed");
    assert.equal(verdicts(judgeSecretFiles(file(null))), "ok");
  });

  it("are asked for where others reach the node", () => {
    const [open, shut] = [
      judgeExposure({ host: "127.0.0.1", asks: false }),
      judgeExposure({ host: "0.0.0.0", asks: true }),
    ];
    assert.equal(
      open[0]!.message,
      "listens on 127.0.0.1: only this machine reaches it, and nobody on it is asked for a token",
    );
    assert.equal(shut[0]!.message, "listens on all addresses: callers must show a token");
  });
});

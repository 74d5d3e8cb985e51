/** `baton doctor` before real nodes and servers: content when all is well, and with a remedy for each trouble that is made. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { baton } from "../../../support/process.ts";
import { TestCluster } from "../../../support/cluster.ts";
import { EtcdServer } from "../../../support/etcd-server.ts";
import { atEnd, suiteScope } from "../../../support/node-cleanup.ts";
import { temporaryDirectory } from "../../../support/node-here.ts";
import { noPgBouncer, PgBouncer } from "../../../support/pgbouncer.ts";
import { PostgresServer } from "../../../support/postgres-server.ts";
import { type NodeProcess, TEST_TOKEN } from "../../../support/process-node.ts";
import { wallClocks } from "../../../support/wall-clock.ts";
import { eventually } from "../../../support/wait.ts";

interface Finding {
  readonly check: string;
  readonly verdict: "ok" | "warning" | "failed" | "skipped";
  readonly message: string;
  readonly remedy: string | null;
}

async function doctor(
  node: NodeProcess,
  ...args: string[]
): Promise<{ readonly code: number | null; readonly findings: readonly Finding[] }> {
  const { code, out, err } = await baton(node, "doctor", "-o", "json", "--token", TEST_TOKEN, ...args);
  assert.ok(out.startsWith("{"), `${code}: ${out}${err}`);
  const { findings } = JSON.parse(out) as { findings: readonly Finding[] };
  for (const { check, verdict, message, remedy } of findings) {
    const trouble = verdict === "warning" || verdict === "failed";
    assert.ok(!trouble || (remedy ?? "").length > 10, `${check}: ${message}: no remedy`);
  }
  return { code, findings };
}

function the(findings: readonly Finding[], verdict: Finding["verdict"], message: RegExp): Finding {
  const found = findings.find((each) => each.verdict === verdict && message.test(each.message));
  assert.ok(found, `no ${verdict} like ${message} among ${JSON.stringify(findings, null, 1)}`);
  return found;
}

const TRIED = /^ada, bob, cyd do not reach lost \(ECONNREFUSED\)$/;

describe("baton doctor", { timeout: 180_000 }, () => {
  const scope = suiteScope();
  let cluster: TestCluster;
  let ada: NodeProcess;

  it("is content with three nodes on PostgreSQL", async () => {
    cluster = await TestCluster.open(scope, { server: { durable: true } });
    [ada] = (await cluster.startAll("ada", "bob", "cyd")) as [NodeProcess, ...NodeProcess[]];
    const findings = await eventually(
      "each to know that it reaches the others",
      async () => {
        const { findings } = await doctor(ada, "--store", cluster.url);
        return findings.some(({ message }) => /and each other \(6 ways/.test(message)) ? findings : null;
      },
      30_000,
    );
    // A cluster that starts on a busy machine may have told of a late write; nothing else may be amiss.
    const amiss = findings.filter(
      ({ verdict, message }) =>
        (verdict === "warning" || verdict === "failed") && !/refused lately/.test(message),
    );
    assert.deepEqual(amiss, []);
    for (const check of ["configuration", "exposure", "database", "nodes", "settings", "clocks"]) {
      assert.equal(findings.find((each) => each.check === check)?.verdict, "ok", check);
    }
    the(findings, "ok", /^ada, bob, cyd, the database and this machine agree within/);
  });

  it("names the node that nobody reaches, and what to look at", async (t) => {
    const lost = await cluster.start("lost", { HTTP__URL: "http://127.0.0.1:1" });
    atEnd(t, () => lost.terminate());
    const { code, findings } = await eventually(
      "all others to have tried",
      async () => {
        const found = await doctor(ada, "--only", "nodes");
        return found.findings.some(({ message }) => TRIED.test(message)) ? found : null;
      },
      30_000,
    );
    assert.equal(code, 1);
    the(findings, "warning", /^lost cannot be reached from here \(http:\/\/127\.0\.0\.1:1: ECONNREFUSED\)$/);
    const { remedy } = the(findings, "failed", TRIED);
    assert.match(remedy!, /http\.url of that node/);
    cluster.forget("lost");
  });

  it("names the clock that is off", async (t) => {
    const clocks = wallClocks(await temporaryDirectory(t));
    if (!clocks) return t.skip("no C compiler here to set a clock with");
    const clock = clocks("dan");
    const dan = await cluster.start("dan", {}, clock.command);
    atEnd(t, () => dan.terminate());
    await eventually("ada to list dan", async () =>
      (await ada.client.cluster.nodes()).nodes.some(({ name, alive }) => name === "dan" && alive),
    );
    clock.set(25);
    const { code, findings } = await doctor(ada, "--only", "clocks", "--store", cluster.url);
    assert.equal(code, 1);
    const { remedy } = the(findings, "failed", /^the clock of dan is 2[45].*s ahead of the others/);
    assert.match(remedy!, /timedatectl/);
    clock.set(0);
    cluster.forget("dan");
  });

  it("tells a pooler in transaction mode", { skip: noPgBouncer }, async (t) => {
    const pooler = await PgBouncer.start(cluster.url, { mode: "transaction", sessions: 5 });
    atEnd(t, () => pooler[Symbol.asyncDispose]());
    const { findings } = await doctor(ada, "--only", "database", "--store", pooler.through(cluster.url));
    assert.match(the(findings, "warning", /transaction pooler/).remedy!, /session mode/);
  });

  it("tells a database that may lose what it promised", async (t) => {
    const careless = await PostgresServer.start({ durable: false });
    atEnd(t, () => careless.stop());
    const url = await careless.createDatabase();
    const { code, findings } = await doctor(ada, "--only", "database", "--store", url);
    assert.equal(code, 1);
    assert.match(the(findings, "failed", /^fsync is off/).remedy!, /ALTER SYSTEM SET fsync = on/);
  });

  it("tells members of an etcd that are away", async (t) => {
    const etcd = await EtcdServer.start();
    atEnd(t, () => etcd.stop());
    const args = ["--only", "etcd", "--store", cluster.url, "--etcd"];
    const well = await doctor(ada, ...args, etcd.url());
    the(well.findings, "ok", /^its member answers \(etcd 3\./);
    const part = await doctor(ada, ...args, `${etcd.url()},http://127.0.0.1:1,http://127.0.0.1:2`);
    the(part.findings, "warning", /^etcd at http:\/\/127\.0\.0\.1:1 does not answer \(ECONNREFUSED\)/);
    await etcd.halt();
    const none = await doctor(ada, ...args, etcd.url());
    assert.equal(none.code, 5);
    assert.match(the(none.findings, "failed", /nobody can be elected$/).remedy!, /start it/);
  });

  it("says that a token is needed, and not that nobody is there", async () => {
    const shut = await cluster.start("shut", { ACCESS__REQUIRED: "always" });
    const { code, out } = await baton(shut, "doctor", "--only", "nodes");
    assert.equal(code, 5);
    assert.match(out, /the node at \S+ does not let you in: this node asks who you are/);
    assert.match(out, /→ show a token with the permission read/);
    the((await doctor(shut, "--only", "nodes")).findings, "ok", /can be reached/);
  });
});

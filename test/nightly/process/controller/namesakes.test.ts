/** Two node-controllers of one name, each on a host of its own as far as they can tell: another data directory (S99, S100). */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { QUICK, roleOf } from "../../../support/cluster.ts";
import { atEnd, type Scope } from "../../../support/node-cleanup.ts";
import { PostgresServer } from "../../../support/postgres-server.ts";
import { eventually } from "../../../support/wait.ts";
import { ControllerProcess } from "../../../process/controller/world.ts";

/** Every life that was ever entered under the name, in order, and every one that was granted a term. */
const WATCH = `
  CREATE SCHEMA audit;
  CREATE TABLE audit.entered (n int GENERATED ALWAYS AS IDENTITY, incarnation text);
  CREATE FUNCTION audit.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO audit.entered (incarnation) VALUES (NEW.incarnation);
    RETURN NULL;
  END $$;
  CREATE TRIGGER noted AFTER INSERT ON baton.node FOR EACH ROW EXECUTE FUNCTION audit.note();
  CREATE TRIGGER revived AFTER UPDATE ON baton.node FOR EACH ROW WHEN (OLD.status = 'dead' AND NEW.status <> 'dead')
    EXECUTE FUNCTION audit.note();
  CREATE TABLE audit.granted (n int GENERATED ALWAYS AS IDENTITY, incarnation text, epoch int);
  CREATE FUNCTION audit.note_grant() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO audit.granted (incarnation, epoch) VALUES (NEW.incarnation, NEW.epoch);
    RETURN NULL;
  END $$;
  CREATE TRIGGER noted AFTER UPDATE ON baton.term FOR EACH ROW WHEN (NEW.role = 'scheduler')
    EXECUTE FUNCTION audit.note_grant()`;

async function world(t: Scope) {
  const server = await PostgresServer.shared();
  atEnd(t, () => server.stop());
  const url = await server.createDatabase();
  const settings = {
    ...QUICK,
    STORE: url,
    CONTROLLER__DEGRADED_AFTER: "2",
    // A life that is spent waiting for the name is not to pass for a steady one.
    CONTROLLER__RESTART_MAX: "30s",
  };
  const start = (name = "ada") => ControllerProcess.start(t, { name, settings });
  const sql = <Row>(text: string) => server.query(text, url) as Promise<Row[]>;
  const first = await start();
  const report = await first.leading();
  await sql(WATCH);
  const living = async (): Promise<string> => {
    const rows = await sql<{ incarnation: string }>(
      "SELECT incarnation FROM baton.node WHERE name = 'ada' AND status <> 'dead'",
    );
    assert.ok(rows.length <= 1, "two lives are entered under one name");
    return rows[0]?.incarnation ?? "";
  };
  const entered = async (): Promise<string[]> =>
    (await sql<{ incarnation: string }>("SELECT incarnation FROM audit.entered ORDER BY n")).map(
      ({ incarnation }) => incarnation,
    );
  /** The lives that were granted a term, in order. */
  const granted = async (): Promise<string[]> =>
    (await sql<{ incarnation: string }>("SELECT incarnation FROM audit.granted ORDER BY n")).map(
      ({ incarnation }) => incarnation,
    );
  return { first, report, start, living, entered, granted };
}

describe("two node-controllers of one name", () => {
  it("the second is refused with NAME_IN_USE while the first lives, disturbs nothing, and takes over when it is dead", async (t) => {
    const { first, report, start, living, entered } = await world(t);
    const life = await living();
    const second = await start();
    const refused = await second.when("to be degraded", ({ status }) => status === "degraded", 30_000);
    assert.equal(refused.role, null);
    assert.equal(refused.controller.last_exit!.reason, "ended by itself");
    assert.match(second.stderr, /another living node is called ada: .*--name/);
    const role = await roleOf({ url: report.url! }, 2_000);
    assert.deepEqual([role?.role, role?.leader_epoch], ["LEADER", report.leader_epoch], "the same term");
    assert.deepEqual([await living(), await entered()], [life, []], "the entry was never another's");
    assert.equal(first.report()!.controller.restarts, 0);

    first.child.kill("SIGKILL");
    const killedAt = systemClock.monotonic();
    const next = await second.leading();
    t.diagnostic(`took over ${(systemClock.monotonic() - killedAt).toFixed(0)} ms after the kill`);
    assert.ok(next.leader_epoch! > report.leader_epoch!);
    assert.deepEqual(await entered(), [await living()]);
  });

  it("a first that stood still until the second had its name is fenced when it goes on", async (t) => {
    const { first, report, start, living, entered, granted } = await world(t);
    const life = await living();
    // Somebody has to say that it is dead: its connections are still there.
    const bob = await start("bob");
    await bob.moonlighting();
    const pids = [first.pid, report.controller.pid!];
    atEnd(t, () => pids.forEach((pid) => resume(pid)));
    for (const pid of pids) process.kill(pid, "SIGSTOP");
    await bob.leading();
    const second = await start();
    await second.moonlighting();
    const later = await living();
    assert.notEqual(later, life);
    const before = (await granted()).length;

    pids.forEach((pid) => resume(pid));
    await eventually("the first to stand by", async () => {
      const role = await roleOf({ url: report.url! });
      assert.notEqual(role?.role, "LEADER", "it believes in its old term");
      return role?.role === "STANDBY";
    });
    // It may have been ended by now, which its node-controller does when it hears that the name is taken.
    const written = await fetch(`${report.url!}/v1/jobs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ task: "tick" }),
      signal: AbortSignal.timeout(5_000),
    }).catch((error: Error) => error);
    assert.ok(written instanceof Error || written.status === 409, "the older life has written");
    // Its node-controller starts it again, and then it is refused as any other of that name.
    await first.when(
      "to be replaced",
      ({ controller }) => controller.last_exit?.reason.includes("another has taken the name ada") ?? false,
    );
    // Whoever leads by now: the older life is none of those who may.
    process.kill(bob.report()!.controller.pid!, "SIGKILL");
    await second.leading();
    assert.equal((await granted()).slice(before).includes(life), false, "the older life leads again");
    assert.equal(await living(), later, "the entry is still the later one's");
    assert.equal((await entered()).includes(life), false, "and was never the first one's again");
  });
});

function resume(pid: number): void {
  try {
    process.kill(pid, "SIGCONT");
  } catch {
    // Replaced meanwhile.
  }
}

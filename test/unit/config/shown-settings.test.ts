import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { describe, it } from "node:test";
import { loadSettings, withPort, shownSettings } from "../../../src/config/load-settings.ts";

const { settings } = loadSettings({
  cwd: tmpdir(),
  environment: {
    BATON_STORE: "postgres://baton:hunter2@db:5432/jobs",
    BATON_CLUSTER__SECRET: "a-very-secret-secret-of-thirty-two-letters",
    BATON_LEADER__LEASE: "12s",
  },
  flags: { "http.port": "9000" },
});

describe("settings that are shown", () => {
  const shown = new Map(shownSettings(settings).map((row) => [row.path, row]));

  it("say where they come from", () => {
    assert.deepEqual(shown.get("leader.lease"), {
      path: "leader.lease",
      value: "12s",
      source: "BATON_LEADER__LEASE",
      isDefault: false,
    });
    assert.deepEqual(shown.get("http.port"), {
      path: "http.port",
      value: 9000,
      source: "--port",
      isDefault: false,
    });
    const retention = shown.get("retention.journal");
    assert.deepEqual([retention!.value, retention!.source, retention!.isDefault], ["30d", "default", true]);
  });

  it("hide secrets and passwords", () => {
    assert.equal(shown.get("cluster.secret")!.value, "(hidden)");
    assert.equal(shown.get("store")!.value, "postgres://baton:***@db:5432/jobs");
    const text = JSON.stringify([...shown.values()]);
    assert.doesNotMatch(text, /hunter2|thirty-two/);
  });

  it("keep their sources when another port was found at the start", () => {
    const rows = new Map(
      shownSettings(withPort(settings, 9001, "free, while 9000 was in use")).map((row) => [row.path, row]),
    );
    assert.deepEqual(rows.get("http.port"), {
      path: "http.port",
      value: 9001,
      source: "free, while 9000 was in use",
      isDefault: false,
    });
    assert.equal(rows.get("leader.lease")!.source, "BATON_LEADER__LEASE");
  });

  it("of a program have no source", () => {
    const rows = shownSettings({ ...settings, leader: { ...settings.leader, leaseMs: 7_000 } });
    const lease = rows.find(({ path }) => path === "leader.lease")!;
    assert.deepEqual([lease.value, lease.source, lease.isDefault], ["7s", null, false]);
    const timeout = rows.find(({ path }) => path === "drain.timeout")!;
    assert.deepEqual([timeout.source, timeout.isDefault], [null, true]);
  });
});

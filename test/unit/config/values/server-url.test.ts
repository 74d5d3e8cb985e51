import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isPushed } from "../../../../src/config/fabric.ts";
import type { LoadOptions } from "../../../../src/config/load-settings.ts";
import type { Settings } from "../../../../src/config/settings.ts";
import { maskedUrl } from "../../../../src/config/values/secret-url.ts";
import { parseEtcdUrl } from "../../../../src/platform/drivers/server-url.ts";
import { load as loaded, mistakes as mistakesIn } from "../load.ts";

const DATABASE = "postgres://me:secret@db:5432/jobs";
const REDIS = "redis://me:hidden@cache:6379/2";
const ETCD = "https://me:hidden@a:2379,https://b:2379,https://c";

const load = (flags: LoadOptions["flags"], environment: LoadOptions["environment"] = {}): Settings =>
  loaded({ flags, environment }).settings;
const mistakes = (flags: LoadOptions["flags"], environment: LoadOptions["environment"] = {}) =>
  mistakesIn({ flags, environment });

describe("a Redis beside the database", () => {
  it("is one flag or one variable, and each worker still pulls", () => {
    const settings = load({ store: DATABASE, "redis.url": REDIS });
    assert.deepEqual(settings.redis, { url: REDIS, prefix: "baton" });
    assert.ok(!isPushed(settings));
    assert.equal(load({ store: DATABASE }, { BATON_REDIS: REDIS }).redis.url, REDIS);
  });

  it("is not needed for push, which is chosen by its setting or by its profile", () => {
    assert.ok(isPushed(load({ store: DATABASE, "dispatch.mode": "push" })));
    assert.ok(isPushed(load({ store: DATABASE, profile: "push" })));
    assert.ok(!isPushed(load({ store: DATABASE, profile: "push", "dispatch.mode": "pull" })));
    assert.ok(!isPushed(load({ profile: "push" })));
  });

  it("needs a database, and push needs one too", () => {
    assert.deepEqual(mistakes({ "redis.url": REDIS }), [
      "--redis needs a database beside it, which keeps the jobs: store: postgres://…",
    ]);
    assert.deepEqual(
      mistakes({ "dispatch.mode": "push" }, { BATON_NODES: "host-1=http://a:1,b=http://b:1" }),
      ["--dispatch cannot be push with the store sqlite: nobody else could take the jobs; leave it out"],
    );
  });

  it("is refused without repeating its password", () => {
    for (const [redis, message] of [
      [
        "redis://me:hidden@a,b/0",
        "--redis must name one host; put what finds the primary of several behind one name",
      ],
      [
        "redis://me:***@cache",
        "--redis has *** in place of its password, as `baton config print` shows it; write the real one",
      ],
    ]) {
      assert.deepEqual(mistakes({ store: DATABASE, "redis.url": redis }), [message]);
    }
    assert.equal(maskedUrl(REDIS), "redis://me:***@cache:6379/2");
    assert.equal(maskedUrl("rediss://:hid:den@cache"), "rediss://:***@cache");
    assert.equal(maskedUrl("redis://cache"), "redis://cache");
  });

  it("has longer times with the profile push, and what was set wins", () => {
    const settings = load(
      { store: DATABASE, "redis.url": REDIS, profile: "push" },
      { BATON_HANDOFF__TRIES: "2" },
    );
    assert.equal(settings.redis.prefix, "baton");
    assert.deepEqual([settings.leader.leaseMs, settings.leader.renewMs], [30_000, 10_000]);
    assert.deepEqual([settings.node.heartbeatMs, settings.node.deadAfterMs], [10_000, 30_000]);
    assert.deepEqual(settings.handoff, {
      ackTimeoutMs: 5_000,
      tries: 2,
      orphanWaitMs: 30_000,
      hardTimeoutMs: 60_000,
      orphanCheckMs: 30_000,
    });
  });
});

describe("an etcd beside the database", () => {
  it("is one flag or one variable, and each worker still pulls", () => {
    const settings = load({ store: DATABASE, "etcd.url": ETCD });
    assert.deepEqual(settings.etcd, { url: ETCD, prefix: "baton" });
    assert.ok(!isPushed(settings));
    assert.ok(isPushed(load({ store: DATABASE, "etcd.url": ETCD, "dispatch.mode": "push" })));
    assert.equal(load({ store: DATABASE }, { BATON_ETCD: ETCD }).etcd.url, ETCD);
    assert.equal(load({}).etcd.url, "");
  });

  it("needs a database, and no Redis beside it", () => {
    assert.deepEqual(mistakes({ "etcd.url": ETCD }), [
      "--etcd needs a database beside it, which keeps the jobs: store: postgres://…",
    ]);
    assert.deepEqual(mistakes({ store: DATABASE, "etcd.url": ETCD, "redis.url": "redis://cache" }), [
      "--etcd does not go with redis.url: one of the two elects the leader; remove the other",
    ]);
  });

  it("is refused without repeating its password", () => {
    const example = "http://host-a:2379,http://host-b:2379,http://host-c:2379";
    for (const [etcd, message] of [
      ["host:2379", `--etcd must be one URL or several such as ${example}, or https:// for TLS`],
      [
        "http://a:2379,etcd://b",
        `--etcd must be one URL or several such as ${example}, or https:// for TLS, not etcd:`,
      ],
      [
        "http://me:hi#den@a:2379",
        `--etcd must be one URL or several such as ${example}; write special characters of user and password in percent (# as %23, / as %2F, ? as %3F, @ as %40, a comma as %2C)`,
      ],
      [
        "http://a:2379/v3",
        "--etcd has something behind its port; the first part of our keys is the setting etcd.prefix",
      ],
      ["http://me@a:2379", "--etcd needs both of user and password, or none"],
      ["http://me:one@a,http://you:two@b", "--etcd names several users; all members know the same one"],
      [
        "http://me:***@a:2379",
        "--etcd has *** in place of its password, as `baton config print` shows it; write the real one",
      ],
    ]) {
      assert.deepEqual(mistakes({ store: DATABASE, "etcd.url": etcd }), [message]);
    }
    assert.match(
      String(mistakes({ store: DATABASE }, { BATON_ETCD__PREFIX: "/baton/" })),
      /^BATON_ETCD__PREFIX must consist of up to 63 letters, digits/,
    );
    assert.equal(maskedUrl(ETCD), "https://me:***@a:2379,https://b:2379,https://c");
  });

  it("has a member behind every comma, each once, with the port of etcd where none is said", () => {
    assert.deepEqual(parseEtcdUrl("http://a, http://b:80,http://a:2379,http://[::1]"), {
      endpoints: ["http://a:2379", "http://b:80", "http://[::1]:2379"],
      user: null,
    });
    assert.deepEqual(parseEtcdUrl("http://me:p%2Cw%25@a,http://b").user, { name: "me", password: "p,w%" });
  });
});

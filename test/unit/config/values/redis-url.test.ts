import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isPushed } from "../../../../src/config/fabric.ts";
import type { LoadOptions } from "../../../../src/config/load-settings.ts";
import { maskedUrl } from "../../../../src/config/values/secret-url.ts";
import type { Settings } from "../../../../src/config/settings.ts";
import { load as loaded, mistakes as mistakesIn } from "../load.ts";

const DATABASE = "postgres://me:secret@db:5432/jobs";
const REDIS = "redis://me:hidden@cache:6379/2";

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

  it("is not needed for push, which is chosen by its setting or by the profile of the origin", () => {
    assert.ok(isPushed(load({ store: DATABASE, "dispatch.mode": "push" })));
    assert.ok(isPushed(load({ store: DATABASE, profile: "orchestrix" })));
    assert.ok(!isPushed(load({ store: DATABASE, profile: "orchestrix", "dispatch.mode": "pull" })));
    assert.ok(!isPushed(load({ profile: "orchestrix" })));
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
      ["cache:6379", "--redis must be a URL such as redis://user:password@host:6379/0, or rediss:// for TLS"],
      [
        "redis://me:hidden@a,b/0",
        "--redis must name one host; put what finds the primary of several behind one name",
      ],
      ["redis://me@cache", "--redis names a user without a password; a user who needs none takes any"],
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

  it("has the times of its origin with the profile orchestrix, and what was set wins", () => {
    const settings = load(
      { store: DATABASE, "redis.url": REDIS, profile: "orchestrix" },
      { BATON_HANDOFF__TRIES: "2" },
    );
    assert.equal(settings.redis.prefix, "orchestrix");
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

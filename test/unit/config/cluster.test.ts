import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../support/fast-check.ts";
import { mainProfile, PROFILE_ALIASES, PROFILES } from "../../../src/config/definitions/profiles.ts";
import { SETTING_BY_PATH } from "../../../src/config/settings.ts";
import { sourceText } from "../../../src/config/mistake.ts";
import { maskedUrl, readStore } from "../../../src/config/values/secret-url.ts";
import { load, mistakes } from "./load.ts";

const DATABASE = "postgres://me:secret@db:5432/jobs";

describe("the store", () => {
  it("may be the URL of a database, under both names of its scheme", () => {
    for (const store of [
      DATABASE,
      "postgresql://db/jobs",
      "postgres://me@db/jobs?sslmode=require",
      "postgres://me:p%23s%40s@[::1]:5433/jobs",
      "postgres://me@/jobs?host=%2Fvar%2Frun%2Fpostgresql",
      "postgres:///jobs",
    ]) {
      assert.equal(load({ flags: { store } }).settings.store, store);
    }
  });

  it("that is no good URL is refused with the remedy", () => {
    for (const store of [
      "postgres://me:se#cret@db/x",
      "postgres://me:se/cret@db/x",
      "postgres://me:se?cret@db/x",
      "postgres://me:1?secret@db/x",
      "postgres://me:1/secret@db/x",
      "postgres://me:secret@db:port/x",
      "postgres://me:secret@db/x#y",
    ]) {
      const [mistake, ...others] = mistakes({ environment: { BATON_STORE: store } });
      assert.match(
        mistake!,
        /^BATON_STORE must be a URL such as postgres:\/\/user:password@host:5432\/database; write /,
      );
      assert.doesNotMatch(mistake!, /cret/, store);
      assert.deepEqual(others, []);
    }
    assert.deepEqual(mistakes({ flags: { store: "postgres://a,b/x" } }), [
      "--store must name one host; put what finds the primary of several behind one name",
    ]);
  });

  it("that is something else is refused without repeating a password", () => {
    const choices =
      "sqlite, memory, a file as sqlite:jobs.db, or a URL such as postgres://user:password@host:5432/database";
    const cases: [string, string][] = [
      ["mysql://me:secret@db/x", `--store must be ${choices}, not "mysql"`],
      ["//me:secret@db/x", `--store must be ${choices}`],
      [
        "redis://:secret@db",
        `--store must be ${choices}: redis keeps no jobs; beside a database it is the setting redis.url`,
      ],
      ["memry", `--store must be ${choices}, not "memry"; did you mean memory?`],
    ];
    for (const [store, message] of cases) assert.deepEqual(mistakes({ flags: { store } }), [message]);
    const [near] = mistakes({ flags: { store: "postgress://me:secret@db/x" } });
    assert.match(near!, /not "postgress"; did you mean postgres:\/\/user/);
  });

  it("is shown without its password, wherever that stands", () => {
    assert.equal(maskedUrl(DATABASE), "postgres://me:***@db:5432/jobs");
    assert.equal(
      maskedUrl("postgresql://me@db/x?password=secret&a=b"),
      "postgresql://me@db/x?password=***&a=b",
    );
    assert.equal(
      maskedUrl("postgres://me:a%3Ab:c@db/x?p%61ssword=secret"),
      "postgres://me:***@db/x?p%61ssword=***",
    );
    assert.equal(maskedUrl("postgres://me:secret@/x?host=/run"), "postgres://me:***@/x?host=/run");
    assert.equal(maskedUrl("sqlite"), "sqlite");
    assert.equal(maskedUrl("postgres://db/x"), "postgres://db/x");
    assert.doesNotMatch(maskedUrl("postgres://me:secret@db:port/x"), /secret/);
  });

  it("never shows a password, whatever it is made of", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 8, maxLength: 20 }), (password) => {
        const written = encodeURIComponent(password);
        for (const url of [`postgres://me:${written}@db/x`, `postgres://db/x?password=${written}`]) {
          const shown = maskedUrl(readStore(url, "/srv"));
          assert.ok(!shown.includes(written) && !decodeURIComponent(shown).includes(password), shown);
        }
      }),
    );
  });

  it("is not taken with the mask in place of the password", () => {
    const [mistake] = mistakes({ flags: { store: maskedUrl(DATABASE) } });
    assert.match(mistake!, /^--store has \*\*\* in place of its password/);
  });
});

describe("the roles of a node", () => {
  it("are read from a list with commas or from several flags, each once and in their order", () => {
    const roles = (flag: string | readonly string[]): readonly string[] =>
      load({ flags: { roles: flag, store: DATABASE } }).settings.roles;
    assert.deepEqual(roles(["worker,gateway"]), ["gateway", "worker"]);
    assert.deepEqual(roles(["scheduler", "gateway", "scheduler"]), ["gateway", "scheduler"]);
    assert.deepEqual(load({ environment: { BATON_ROLES: "worker, scheduler" } }).settings.roles, [
      "worker",
      "scheduler",
    ]);
  });

  it("must be known, and at least one", () => {
    assert.deepEqual(mistakes({ flags: { roles: ["gateway,schedular"] } }), [
      '--roles knows only gateway, function, worker, scheduler, not "schedular"; did you mean scheduler?',
    ]);
    assert.deepEqual(mistakes({ flags: { roles: [""] } }), [
      "--roles must name at least one of gateway, function, worker, scheduler",
    ]);
  });

  it("have the scheduler among them when the store belongs to the node alone", () => {
    const [mistake, ...others] = mistakes({ flags: { roles: ["gateway", "worker"] } });
    assert.match(mistake!, /^--roles must have scheduler with the store sqlite: .* nobody else could lead/);
    assert.deepEqual(others, []);
    load({ flags: { roles: ["worker"], store: DATABASE } });
  });
});

describe("a cluster", () => {
  it("of several nodes needs a store that they share", () => {
    const [mistake] = mistakes({ flags: { "cluster.minimum_nodes": "3", store: "memory" } });
    assert.match(mistake!, /^--minimum-nodes must be 1 with the store memory: .* nobody can join/);
    const flags = { "cluster.minimum_nodes": "3", store: DATABASE };
    assert.equal(load({ flags }).settings.cluster.minimumNodes, 3);
  });

  it("lives in a schema with a plain name and needs two connections", () => {
    const environment = { BATON_POSTGRES__SCHEMA: "jobs_2", BATON_POSTGRES__CONNECTIONS: "2" };
    assert.deepEqual(load({ environment }).settings.postgres, {
      schema: "jobs_2",
      connections: 2,
      waitMs: 30_000,
    });
    assert.deepEqual(mistakes({ environment: { BATON_POSTGRES__CONNECTIONS: "1" } }), [
      "BATON_POSTGRES__CONNECTIONS must be at least 2",
    ]);
    for (const schema of ["Jobs", "a-b", "1a", "pg_jobs", 'a"; drop', "x".repeat(64)]) {
      const [mistake] = mistakes({ environment: { BATON_POSTGRES__SCHEMA: schema } });
      assert.match(mistake!, /^BATON_POSTGRES__SCHEMA must be 1 to 63 lower-case letters/, schema);
    }
  });
});

describe("a profile", () => {
  it("changes defaults, and says so", () => {
    const { settings, sources } = load({ environment: { BATON_PROFILE: "wan" } });
    assert.deepEqual(settings.leader, {
      leaseMs: 60_000,
      renewMs: 30_000,
      marginMs: 15_000,
      retryMs: 5_000,
    });
    assert.deepEqual(
      [settings.node.heartbeatMs, settings.node.deadAfterMs, settings.drain.timeoutMs],
      [5_000, 15_000, 30_000],
    );
    assert.equal(sourceText(sources.get("leader.lease")!), "profile wan");
    assert.equal(sourceText(sources.get("worker.lease")!), "default");
  });

  it("changes nothing that somebody has set, not even to the default", () => {
    const { settings, sources } = load({
      environment: { BATON_DRAIN__TIMEOUT: "25s", BATON_NODE__HEARTBEAT: "6s" },
      flags: { profile: "wan" },
    });
    assert.deepEqual([settings.drain.timeoutMs, settings.node.heartbeatMs], [25_000, 6_000]);
    assert.equal(sourceText(sources.get("drain.timeout")!), "BATON_DRAIN__TIMEOUT");
  });

  it("is judged together with what was set, which is named as the mistake", () => {
    assert.deepEqual(mistakes({ environment: { BATON_NODE__HEARTBEAT: "8s" }, flags: { profile: "wan" } }), [
      "BATON_NODE__HEARTBEAT (8s) is too long: node.dead_after (15s) must be at least 2 × node.heartbeat (8s), otherwise one late heartbeat looks like a death",
    ]);
  });

  it("that is not known is refused once", () => {
    assert.deepEqual(mistakes({ flags: { profile: "wam" } }), [
      '--profile must be one of lan, wan, local, quiet-peers, slow-peers, push, not "wam"; did you mean wan?',
    ]);
  });

  it("names only settings that exist, and holds by itself", () => {
    for (const [profile, defaults] of Object.entries(PROFILES)) {
      for (const path of Object.keys(defaults)) assert.ok(SETTING_BY_PATH.has(path), path);
      load({ flags: { profile } });
    }
  });

  it("has the same values under its alias, and may have more", () => {
    assert.ok(PROFILE_ALIASES.length > 0);
    for (const alias of PROFILE_ALIASES) {
      const aliased = load({ flags: { profile: alias } });
      const main = load({ flags: { profile: mainProfile(alias) } });
      const different = [...main.values].filter(([path, value]) => aliased.values.get(path) !== value);
      const lists = different.filter(([, value]) => typeof value === "object").map(([path]) => path);
      for (const path of lists) assert.deepEqual(aliased.values.get(path), main.values.get(path), path);
      const changed = different.map(([path]) => path).filter((path) => !lists.includes(path));
      const expected = mainProfile(alias) === "push" ? ["profile", "redis.prefix"] : ["profile"];
      assert.deepEqual(changed, expected, alias);
    }
  });

  it("is named by its alias where it was given by it", () => {
    for (const alias of PROFILE_ALIASES) {
      const { values, sources } = load({ flags: { profile: alias } });
      assert.equal(values.get("profile"), alias);
      assert.equal(sourceText(sources.get("node.dead_after")!), `profile ${alias}`);
      if (mainProfile(alias) === "push") assert.equal(values.get("redis.prefix"), alias);
    }
  });
});

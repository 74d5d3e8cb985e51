import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import * as fc from "../../support/fast-check.ts";
import { nodeNameFrom } from "../../../src/config/load-settings.ts";
import { sourceText } from "../../../src/config/mistake.ts";
import { NODE_NAME } from "../../../src/core/ids.ts";
import { cwd, load, mistakes, write } from "./load.ts";

describe("loading settings", () => {
  it("gives the defaults, nested and in their units, when nothing is set", () => {
    const { settings, file, warnings } = load();
    // All of them: docs/configuration.md, which settings.test.ts compares with the table.
    assert.deepEqual([settings.name, settings.data, settings.tasks], ["host-1", join(cwd, ".baton"), []]);
    assert.deepEqual(settings.drain, { timeoutMs: 25_000, cleanupMs: 5_000 });
    assert.deepEqual(settings.retry, {
      attempts: 3,
      delayMs: 1_000,
      factor: 2,
      maxDelayMs: 300_000,
      jitter: 0.25,
    });
    assert.equal(settings.http.bodyLimitBytes, 1_048_576);
    assert.equal(file, null);
    assert.deepEqual(warnings, []);
  });

  it("lets the file win over defaults, the environment over the file and flags over all", () => {
    write("http:\n  port: 1001\n  host: file.example\nname: from-file\nlog:\n  level: warn\n");
    const loaded = load({
      environment: { BATON_HTTP__PORT: "1002", BATON_NAME: "from-env" },
      flags: { name: "from-flag" },
    });
    assert.equal(loaded.settings.http.host, "file.example");
    assert.equal(loaded.settings.http.port, 1002);
    assert.equal(loaded.settings.name, "from-flag");
    const source = (path: string): string => sourceText(loaded.sources.get(path)!);
    assert.equal(source("http.host"), "baton.yaml:3:9");
    assert.equal(source("http.port"), "BATON_HTTP__PORT");
    assert.equal(source("name"), "--name");
    assert.equal(source("data"), "default");
  });

  it("finds baton.yaml, then baton.yml, then baton.json in the working directory", () => {
    write('{ "name": "json" }', "baton.json");
    assert.equal(load().settings.name, "json");
    write("name: yml", "baton.yml");
    assert.equal(load().settings.name, "yml");
    write("name: yaml", "baton.yaml");
    assert.equal(load().settings.name, "yaml");
    assert.equal(load({ environment: { BATON_CONFIG: "baton.json" } }).settings.name, "json");
    assert.equal(
      load({ environment: { BATON_CONFIG: "baton.json" }, configFile: "baton.yml" }).settings.name,
      "yml",
    );
  });

  it("takes paths in a file from the file's directory and others from the working directory", () => {
    mkdirSync(join(cwd, "etc"));
    write("data: store\ntasks: [a, /b]\n", "etc/baton.yaml");
    const inFile = load({ configFile: "etc/baton.yaml" });
    assert.equal(inFile.settings.data, join(cwd, "etc/store"));
    assert.deepEqual(inFile.settings.tasks, [join(cwd, "etc/a"), "/b"]);
    const flags = load({ configFile: "etc/baton.yaml", flags: { tasks: ["x", "y,z"], data: "d" } });
    assert.deepEqual(flags.settings.tasks, [join(cwd, "x"), join(cwd, "y,z")]);
    assert.equal(flags.settings.data, join(cwd, "d"));
  });

  it("reads lists from a variable with commas and ignores empty variables", () => {
    const { settings } = load({
      environment: { BATON_WORKER__QUEUES: "mail, video,", BATON_HTTP__PORT: "" },
    });
    assert.deepEqual(settings.worker.queues, ["mail", "video"]);
    assert.equal(settings.http.port, 8420);
  });

  it("accepts an empty file, empty sections and aliases", () => {
    write("# nothing yet\n");
    assert.equal(load().settings.http.port, 8420);
    write("http:\nleader: { lease: &long 20s }\nworker: { lease: *long }\n");
    assert.equal(load().settings.worker.leaseMs, 20_000);
  });

  it("warns about a variable with one underscore where two are needed", () => {
    const { warnings } = load({
      environment: { BATON_HTTP_PORT: "80", BATON_URL: "http://x", BATON_SERVICE_HOST: "x" },
    });
    assert.deepEqual(warnings, [
      { message: "BATON_HTTP_PORT is ignored", remedy: "did you mean BATON_HTTP__PORT?" },
    ]);
  });
});

describe("mistakes in settings", () => {
  it("proxies are addresses and ranges of them, and never everybody", () => {
    const of = (proxies: string) => mistakes({ environment: { BATON_HTTP__TRUSTED_PROXIES: proxies } });
    const wrong = "999.1.1.1 10.0.0.0/33 ::1/129 : 0.0.0.0/0 ::/0 proxy.local 10.0.0.0/8/8".split(" ");
    for (const bad of wrong) {
      const message = new RegExp(`must be addresses or ranges .*and ${bad} is none`);
      assert.match(of(`127.0.0.1,${bad}`).join(), message);
    }
    const good = { BATON_HTTP__TRUSTED_PROXIES: "127.0.0.1,10.0.0.0/8,fd00::/8,::1" };
    assert.equal(load({ environment: good }).settings.http.trustedProxies.length, 4);
  });

  it("are told all at once, each at its place", () => {
    const http = "http:\n  prot: 80\n  port: many\n  body_limit: 10\n";
    const worker = "worker:\n  concurrency: 1.5\n  queues: mail\n";
    write(`nmae: node-1\n${http}${worker}leader:\n  lease: 30\nlog: { level: loud }`);
    assert.deepEqual(mistakes({ environment: { BATON_RETRY__FACTOR: "x" }, flags: { store: "sqlit" } }), [
      "baton.yaml:1:1: unknown setting nmae; did you mean name?",
      "baton.yaml:3:3: unknown setting http.prot; did you mean http.port?",
      'baton.yaml:4:9: http.port must be a whole number, not "many"',
      "baton.yaml:5:15: http.body_limit must be a size such as 512KiB, 1MiB or 10MB, not 10",
      "baton.yaml:7:16: worker.concurrency must be a whole number, not 1.5",
      'baton.yaml:8:11: worker.queues must be a list, not "mail"; write [mail]',
      "baton.yaml:10:10: leader.lease must be at least 100ms, and is 30ms",
      'baton.yaml:11:15: log.level must be one of debug, info, warn, error, silent, not "loud"',
      'BATON_RETRY__FACTOR must be a number, not "x"',
      '--store must be sqlite, memory, a file as sqlite:jobs.db, or a URL such as postgres://user:password@host:5432/database, not "sqlit"; did you mean sqlite?',
    ]);
  });

  it("of the YAML itself are told at their place", () => {
    write("http:\n  port: [1\nname: x\n");
    const [first] = mistakes();
    assert.match(first!, /^baton\.yaml:3:1: /);
    write("name: a\nname: b\n");
    assert.deepEqual(mistakes(), ["baton.yaml:2:1: Map keys must be unique"]);
    write('{ "name": "a" "data": "b" }', "baton.json");
    assert.match(mistakes({ configFile: "baton.json" })[0]!, /^baton\.json:1:\d+: /);
  });

  it("of shape are told with the remedy", () => {
    const cases: [string, string][] = [
      ["- a\n", "baton.yaml:1:1: a configuration file is a map of settings, such as `name: node-1`"],
      [
        "http: 80\n",
        "baton.yaml:1:7: http is a section; write its settings (host, port, url, body_limit, base_path, rate_limit, trusted_proxies) below it",
      ],
      ["http.port: 80\n", "baton.yaml:1:1: unknown setting http.port; write it as `port` under `http:`"],
      ["port: 80\n", "baton.yaml:1:1: unknown setting port; did you mean http.port?"],
      ["http:\n  port:\n", "baton.yaml:2:3: http.port has no value; give it one or remove the line"],
      ["name: 7\n", 'baton.yaml:1:7: name must be text, not 7; write "7" in quotes'],
      ['http: { port: "80" }\n', 'baton.yaml:1:15: http.port must be a whole number, not "80"'],
      ["data: {}\n", "baton.yaml:1:7: data must be text, not a section"],
      [
        "jobs: { timeout: [1s] }\n",
        'baton.yaml:1:18: jobs.timeout must be a duration such as "30s", not a list',
      ],
      [
        "name: -x-\n",
        'baton.yaml:1:7: name must consist of letters, digits and ._- and begin and end with a letter or digit, not "-x-"',
      ],
    ];
    for (const [text, message] of cases) {
      write(text);
      assert.deepEqual(mistakes(), [message]);
    }
  });

  it("of range name the bound", () => {
    write(
      "http: { port: 65536 }\nworker: { concurrency: -1 }\njobs: { timeout: 30d }\nretry: { jitter: 2 }\n",
    );
    assert.deepEqual(mistakes(), [
      "baton.yaml:1:15: http.port must be at most 65535",
      "baton.yaml:2:24: worker.concurrency must be at least 0",
      "baton.yaml:3:18: jobs.timeout must be at most 24d, and is 30d",
      "baton.yaml:4:18: retry.jitter must be at most 1",
    ]);
  });

  it("in a value that is overruled are told all the same", () => {
    write("http: { port: x }\n");
    assert.deepEqual(mistakes({ flags: { "http.port": "80" } }), [
      'baton.yaml:1:15: http.port must be a whole number, not "x"',
    ]);
  });

  it("in a variable with a name of our form name the nearest one", () => {
    assert.deepEqual(mistakes({ environment: { BATON_HTTP__PROT: "1", BATON_QQQQQ__ZZZZZ: "1" } }), [
      "unknown variable BATON_HTTP__PROT; did you mean BATON_HTTP__PORT?",
      "unknown variable BATON_QQQQQ__ZZZZZ",
    ]);
  });

  it("in the name of the file say who named it", () => {
    assert.deepEqual(mistakes({ configFile: "nope.yaml" }), [
      "--config cannot be read (nope.yaml): there is no such file",
    ]);
    mkdirSync(join(cwd, "dir"));
    assert.deepEqual(mistakes({ environment: { BATON_CONFIG: "dir" } }), [
      "BATON_CONFIG cannot be read (dir): it is a directory",
    ]);
  });
});

describe("relations between settings", () => {
  it("are told where one of the values was written", () => {
    write("leader:\n  lease: 2s\nworker: { renew: 5s }\ndrain:\n  timeout: 5s\n");
    assert.deepEqual(mistakes(), [
      "baton.yaml:2:10: leader.lease (2s) must be longer than leader.renew (1s) + leader.margin (1500ms): otherwise a leader stops trusting its lease before it renews it",
      "baton.yaml:3:18: worker.renew (5s) is too long: worker.lease (10s) must be longer than 2 × worker.renew (5s), otherwise one late renewal loses the jobs that are running",
      "baton.yaml:5:12: drain.timeout (5s) must be longer than drain.cleanup (5s): otherwise handlers are told to stop before the drain begins",
    ]);
  });

  it("allow a node to be declared dead after two heartbeats, and not before", () => {
    const { settings } = load({ environment: { BATON_NODE__HEARTBEAT: "2500ms" } });
    assert.equal(settings.node.deadAfterMs, 5_000);
    assert.deepEqual(mistakes({ environment: { BATON_NODE__DEAD_AFTER: "1999ms" } }), [
      "BATON_NODE__DEAD_AFTER (1999ms) must be at least 2 × node.heartbeat (1s): otherwise one late heartbeat looks like a death",
    ]);
  });

  it("are not judged on a value that could not be read", () => {
    assert.deepEqual(mistakes({ environment: { BATON_LEADER__LEASE: "2" } }), [
      "BATON_LEADER__LEASE needs a unit: write 2s or 2ms, not 2",
    ]);
  });
});

describe("the node's name", () => {
  it("is a valid one whatever the host is called", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 100 }), (host) => assert.match(nodeNameFrom(host), NODE_NAME)),
    );
    assert.equal(nodeNameFrom("web-1.example.com"), "web-1.example.com");
    assert.equal(nodeNameFrom("Anna's Laptop"), "Anna-s-Laptop");
    assert.equal(nodeNameFrom("___"), "node");
  });
});

describe("access.token", () => {
  for (const [token, why] of [
    ["short", /is too short: 5 characters, and 32 are needed/],
    ["changeme", /is known to everybody/],
    ["abcdefgh".repeat(4), /is a repetition/],
    ["has a space in it, which no header can carry", /does not fit into a header/],
  ] as const) {
    it(`"${token}" is refused`, () => {
      const environment = { BATON_HTTP__HOST: "0.0.0.0", BATON_ACCESS__TOKEN: token };
      assert.match(mistakes({ environment }).join("\n"), why);
    });
  }
});

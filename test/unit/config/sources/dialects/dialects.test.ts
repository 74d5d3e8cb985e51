import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { adviceText, sourceText } from "../../../../../src/config/mistake.ts";
import { FOREIGN_FILE_VARIABLE } from "../../../../../src/config/sources/dialects/dialects.ts";
import { cwd, load, mistakes, write } from "../../load.ts";

const NODE_MAP = `{
  "_comment": "three nodes",
  "self_name": "node-a",
  "nodes": {
    "node-a": "http://node-a.internal:8080",
    "node-b": "http://node-b.internal:8080",
    "node-c": "http://node-c.internal:8080"
  },
  "health_check_interval_seconds": 5,
  "internal_request_timeout_seconds": 5,
  "enable_round_robin": true,
  "rr_state_file": "/tmp/rr_state.json",
  "rr_strategy": "global"
}`;

function nodeMap(over: Readonly<Record<string, unknown>> = {}): string {
  const file: Record<string, unknown> = { ...JSON.parse(NODE_MAP), ...over };
  return JSON.stringify(file, null, 2);
}

describe("a cluster_config.json with a map of nodes", () => {
  it("means the same here, and every value knows its place", () => {
    write(NODE_MAP, "cluster_config.json");
    const { settings, sources, warnings, file } = load();
    assert.equal(file, "cluster_config.json");
    assert.equal(settings.name, "node-a");
    assert.equal(settings.nodes["node-c"], "http://node-c.internal:8080");
    assert.deepEqual(
      [settings.http.host, settings.http.port, settings.http.url],
      ["0.0.0.0", 8080, "http://node-a.internal:8080"],
    );
    assert.deepEqual([settings.peers.healthIntervalMs, settings.peers.requestTimeoutMs], [5_000, 5_000]);
    assert.deepEqual(settings.placement, { strategy: "global", stateFile: "/tmp/rr_state.json" });
    assert.equal(sourceText(sources.get("name")!), "cluster_config.json:3:16");
    assert.equal(sourceText(sources.get("peers.health_interval")!), "cluster_config.json:9:36");
    assert.deepEqual(warnings, []);
  });

  it("is found through its variable, through --config, and last in the working directory", () => {
    mkdirSync(join(cwd, "etc"));
    write(NODE_MAP, "etc/other.json");
    const environment = { [FOREIGN_FILE_VARIABLE]: "etc/other.json" };
    assert.equal(load({ environment }).settings.name, "node-a");
    assert.equal(load({ configFile: "etc/other.json" }).settings.name, "node-a");
    write("name: ours\n", "baton.yaml");
    assert.equal(load({ environment }).settings.name, "node-a");
    assert.equal(load({ environment: { ...environment, BATON_CONFIG: "baton.yaml" } }).settings.name, "ours");
    write(NODE_MAP, "cluster_config.json");
    assert.equal(load().settings.name, "ours");
    assert.deepEqual(mistakes({ environment: { [FOREIGN_FILE_VARIABLE]: "nope" } }), [
      `${FOREIGN_FILE_VARIABLE} cannot be read (nope): there is no such file`,
    ]);
  });

  it("leaves jobs where they are unless the rotation is switched on", () => {
    const strategy = (over: Readonly<Record<string, unknown>>): string => {
      write(nodeMap(over), "cluster_config.json");
      return load().settings.placement.strategy;
    };
    assert.equal(strategy({ enable_round_robin: false }), "local");
    assert.equal(strategy({ enable_round_robin: undefined }), "local");
    assert.equal(strategy({ rr_strategy: "per-node" }), "per-node");
    assert.equal(strategy({ rr_strategy: undefined }), "global");
  });

  it("may have slow checks without making its nodes dead between two of them", () => {
    write(
      nodeMap({ health_check_interval_seconds: 30, internal_request_timeout_seconds: 2.5 }),
      "cluster_config.json",
    );
    const { peers, node } = load().settings;
    assert.deepEqual(
      [peers.healthIntervalMs, peers.requestTimeoutMs, node.deadAfterMs],
      [30_000, 2_500, 90_000],
    );
  });

  it("may leave out what is optional, also with null", () => {
    const { self_name, nodes } = JSON.parse(NODE_MAP) as Record<string, unknown>;
    write(JSON.stringify({ self_name, nodes, rr_state_file: null }), "cluster_config.json");
    const { settings } = load();
    assert.equal(settings.placement.stateFile, "");
    assert.equal(settings.peers.requestTimeoutMs, 5_000);
  });

  it("is overruled by the environment and by flags", () => {
    write(NODE_MAP, "cluster_config.json");
    const { settings } = load({ environment: { BATON_HTTP__HOST: "127.0.0.1" }, flags: { name: "node-b" } });
    assert.deepEqual([settings.http.host, settings.http.url], ["127.0.0.1", "http://node-b.internal:8080"]);
  });

  it("is judged by its own rules, at the place of the mistake", () => {
    const cases: [Readonly<Record<string, unknown>>, string][] = [
      [{ self_name: undefined }, "1:1: self_name is missing; a cluster_config.json has self_name and nodes"],
      [{ nodes: undefined }, "1:1: nodes is missing; a cluster_config.json has self_name and nodes"],
      [{ self_name: "node-x" }, '3:16: name must be one of nodes (node-a, node-b, node-c), not "node-x"'],
      [{ enable_round_robin: "yes" }, "11:25: enable_round_robin must be true or false, not yes"],
      [{ rr_strategy: "globl" }, '13:18: rr_strategy must be global or per-node, not "globl"'],
      [
        { health_check_interval_seconds: "5" },
        '9:36: health_check_interval_seconds must be a number of seconds above 0, not "5"',
      ],
      [
        { internal_request_timeout_seconds: 0 },
        "10:39: internal_request_timeout_seconds must be a number of seconds above 0, not 0",
      ],
    ];
    for (const [over, message] of cases) {
      write(nodeMap(over), "cluster_config.json");
      const [first] = mistakes();
      // JSON.stringify leaves out what is undefined, and the lines after it move.
      assert.ok(first!.endsWith(message.slice(message.indexOf(" "))), first);
      if (!Object.values(over).includes(undefined)) assert.equal(first, `cluster_config.json:${message}`);
    }
  });

  it("is told about keys that say nothing here, but for comments", () => {
    write(nodeMap({ workers: 3 }), "cluster_config.json");
    assert.deepEqual(load().warnings.map(adviceText), ["cluster_config.json: ignored: workers"]);
  });
});

const CLUSTER_SECTION = `cluster:
  node: "node2"
  bind: "localhost:25874"
  user: "cluster_user"
  pass: "cluster_pass"
  manager:
    type: "join_server"
    addr: "localhost:2223"
    join: "localhost:2222"
`;

describe("a cluster section with a join server", () => {
  it("means the same here, and every value knows its place", () => {
    write(CLUSTER_SECTION, "other.yaml");
    const { settings, sources } = load({ configFile: "other.yaml" });
    assert.equal(settings.name, "node2");
    assert.deepEqual([settings.http.host, settings.http.port], ["127.0.0.1", 25874]);
    assert.deepEqual(settings.manager, {
      addr: "localhost:2223",
      user: "cluster_user",
      pass: "cluster_pass",
    });
    assert.deepEqual(settings.join, ["localhost:2222"]);
    assert.equal(sourceText(sources.get("manager.pass")!), "other.yaml:5:9");
    assert.equal(sourceText(sources.get("join")!), "other.yaml:9:11");
  });

  it("without something to join begins a cluster, and binds where that system does", () => {
    write(CLUSTER_SECTION.replace(/ {4}join.*\n/, "").replace(/ {2}bind.*\n/, ""), "other.yaml");
    const { settings } = load({ configFile: "other.yaml" });
    assert.deepEqual(settings.join, []);
    assert.deepEqual([settings.http.host, settings.http.port], ["127.0.0.1", 25873]);
    write(
      CLUSTER_SECTION.replace('join: "localhost:2222"', 'join: ""').replace("localhost:25874", ":25874"),
      "other.yaml",
    );
    assert.equal(load({ configFile: "other.yaml" }).settings.http.host, "0.0.0.0");
  });

  it("is told apart from ours", () => {
    write("cluster: { name: mine, quorum: none }\n", "baton.yaml");
    assert.equal(load().settings.cluster.quorum, "none");
    // Its file may lie where ours does.
    write(CLUSTER_SECTION, "baton.yaml");
    assert.equal(load().settings.name, "node2");
  });

  it("may stand among slots and users, which say nothing here", () => {
    write(`${CLUSTER_SECTION}slot_000:\n  kind: simple_memory\nlog:\n  level: warning\n`, "other.yaml");
    assert.deepEqual(load({ configFile: "other.yaml" }).warnings.map(adviceText), [
      "other.yaml: ignored: slot_000, log",
    ]);
  });

  it("may have a number for a name or a password, as that system reads it", () => {
    write(CLUSTER_SECTION.replace('"cluster_pass"', "0123456").replace('"node2"', "2"), "other.yaml");
    const { settings } = load({ configFile: "other.yaml" });
    assert.deepEqual([settings.name, settings.manager.pass], ["2", "0123456"]);
  });

  it("is judged by its own rules, at the place of the mistake and without the password", () => {
    const needs = "the section cluster needs node, user, pass, manager.type, manager.addr";
    const cases: [string, string, string][] = [
      [' node: "node2"', ' nope: "x"', `1:1: cluster.node is missing; ${needs}`],
      ['"node2"', `"${"n".repeat(21)}"`, "2:9: cluster.node has 21 characters; at most 20 are allowed"],
      ['user: "cluster_user"', 'user: "abc"', "4:9: cluster.user must have at least 4 characters"],
      ['pass: "cluster_pass"', 'pass: "xyz"', "5:9: cluster.pass must have at least 4 characters"],
      ['pass: "cluster_pass"', "pass:", `5:3: cluster.pass is missing; ${needs}`],
      ["join_server", "raft", '7:11: cluster.manager.type must be join_server, not "raft"'],
      ['    type: "join_server"\n', "", `6:3: cluster.manager.type is missing; ${needs}`],
      ['    addr: "localhost:2223"\n', "", `6:3: cluster.manager.addr is missing; ${needs}`],
      [
        "localhost:2223",
        "localhost",
        '8:11: manager.addr must be an address such as 10.0.0.5:2222, not "localhost"',
      ],
      [
        '"localhost:25874"',
        '"nowhere"',
        '3:9: cluster.bind must be an address such as localhost:25873, not "nowhere"',
      ],
      [
        'join: "localhost:2222"',
        'join: "127.0.0.1:2223"',
        "9:11: join has this node's own address, 127.0.0.1:2223; a node joins through another one",
      ],
    ];
    for (const [from, to, message] of cases) {
      write(CLUSTER_SECTION.replace(from, to), "other.yaml");
      const told = mistakes({ configFile: "other.yaml" });
      assert.equal(told[0], `other.yaml:${message}`);
      assert.doesNotMatch(told.join("\n"), /cluster_pass|xyz/);
    }
  });
});

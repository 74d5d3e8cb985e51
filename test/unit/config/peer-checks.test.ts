import assert from "node:assert/strict";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { listeningHost, parseAddress, reaches } from "../../../src/config/values/address.ts";
import { discoverNodes, parseDiscovery, type Resolver } from "../../../src/config/values/node-map.ts";
import { fabricOf } from "../../../src/config/fabric.ts";
import type { LoadOptions } from "../../../src/config/load-settings.ts";
import { PROFILE_NAMES } from "../../../src/config/definitions/profiles.ts";
import { adviceText, sourceText } from "../../../src/config/mistake.ts";
import { cwd, load, mistakes, write } from "./load.ts";

const NODES = "a=http://10.0.0.1:8420,b=http://10.0.0.2:8420";

describe("the nodes of a cluster", () => {
  const wanted = { a: "http://10.0.0.1:8420", b: "http://10.0.0.2:8420" };

  it("are a map in a file, and JSON or pairs in a variable and a flag", () => {
    write("name: a\nnodes:\n  a: http://10.0.0.1:8420/\n  b: http://10.0.0.2:8420\n");
    assert.deepEqual(load().settings.nodes, wanted);
    rmSync(join(cwd, "baton.yaml"));
    for (const text of [
      NODES,
      ` a = http://10.0.0.1:8420/ , b=http://10.0.0.2:8420, `,
      JSON.stringify(wanted),
    ]) {
      assert.deepEqual(load({ environment: { BATON_NODES: text, BATON_NAME: "a" } }).settings.nodes, wanted);
    }
    const flags = { nodes: ["a=http://10.0.0.1:8420", "b=http://10.0.0.2:8420"], name: "b" };
    assert.deepEqual(load({ flags }).settings.nodes, wanted);
  });

  it("that are written wrongly are told with the node at fault", () => {
    const url = "must have a URL such as http://10.0.0.1:8420, without a path, for a";
    const cases: [string, string][] = [
      ["a", 'must be written as a=http://10.0.0.1:8420,b=http://10.0.0.2:8420, not "a"'],
      ["a=x,a=y", "has a twice"],
      ["{", "is not valid JSON; write it in full, or as a=http://10.0.0.1:8420,b=http://10.0.0.2:8420"],
      ["a=10.0.0.1:8420", `${url}, not "10.0.0.1:8420"`],
      ["a=http://h:1/path", `${url}, not "http://h:1/path"`],
      ["a=http://me:hidden@h:1", url],
      ["a=http://h:0", `${url}, not "http://h:0"`],
      ['{"a":1}', url],
      [
        "-a=http://h:1",
        'has a name that is none: "-a" must consist of letters, digits and ._- and begin and end with a letter or digit',
      ],
      ["a=http://h:1,b=http://H:1", "has http://h:1 for a and b; every node has a URL of its own"],
    ];
    for (const [nodes, message] of cases) {
      assert.deepEqual(mistakes({ environment: { BATON_NODES: nodes } }), [`BATON_NODES ${message}`]);
    }
    write("nodes: [a]\n");
    assert.deepEqual(mistakes({}), [
      "baton.yaml:1:8: nodes must be a map of names and URLs, such as `node-1: http://10.0.0.1:8420`",
    ]);
  });

  it("have this one among them", () => {
    assert.deepEqual(mistakes({ flags: { nodes: NODES } }), [
      'name must be one of nodes (a, b), not "host-1"; say which one this is with --name',
    ]);
    assert.deepEqual(mistakes({ flags: { nodes: NODES, name: "c" } }), [
      '--name must be one of nodes (a, b), not "c"',
    ]);
  });

  it("tell this one where to listen, unless that is said elsewhere", () => {
    const listens = (url: string, more: LoadOptions["flags"] = {}): unknown[] => {
      const { settings } = load({ flags: { nodes: `a=${url}`, name: "a", ...more } });
      return [settings.http.host, settings.http.port, settings.http.url];
    };
    assert.deepEqual(listens("http://10.0.0.1:9000"), ["10.0.0.1", 9000, "http://10.0.0.1:9000"]);
    assert.deepEqual(listens("http://node-a.internal"), ["0.0.0.0", 80, "http://node-a.internal"]);
    assert.deepEqual(listens("http://localhost:81"), ["127.0.0.1", 81, "http://localhost:81"]);
    assert.deepEqual(listens("http://[::1]:81"), ["::1", 81, "http://[::1]:81"]);
    // TLS ends before the node, at something whose port is not the node's.
    assert.deepEqual(listens("https://a.internal"), ["127.0.0.1", 8420, "https://a.internal"]);
    assert.deepEqual(listens("http://10.0.0.1:9000", { "http.host": "0.0.0.0", "http.port": "1" }), [
      "0.0.0.0",
      1,
      "http://10.0.0.1:9000",
    ]);
    const { sources } = load({ flags: { nodes: NODES, name: "a" } });
    assert.equal(sourceText(sources.get("http.port")!), "--nodes");
  });

  it("do not go with a shared database, nor with another way to find nodes", () => {
    const store = "postgres://db/x";
    assert.deepEqual(mistakes({ flags: { nodes: NODES, name: "a", store } }), [
      "--nodes does not go with store: postgres://…, where all nodes on the database are the cluster; remove one of the two",
    ]);
    assert.deepEqual(mistakes({ flags: { nodes: NODES, name: "a", join: ["10.0.0.2:1"] } }), [
      "--join does not go with nodes; the nodes are listed, or joined, or looked up",
    ]);
  });

  it("are enough for what the cluster waits for", () => {
    const flags = { nodes: NODES, name: "a", "cluster.minimum_nodes": "2" };
    assert.equal(load({ flags }).settings.cluster.minimumNodes, 2);
    assert.deepEqual(mistakes({ flags: { ...flags, "cluster.minimum_nodes": "3" } }), [
      "--minimum-nodes must be at most 2, the number of nodes",
    ]);
  });

  it("need no scheduler of their own each", () => {
    load({ flags: { nodes: NODES, name: "a", roles: ["gateway", "worker"] } });
  });

  it("do not name this one's own address for another", () => {
    const nodes = "a=http://127.0.0.1:8420,b=http://localhost:8420";
    assert.deepEqual(mistakes({ flags: { nodes, name: "a" } }), [
      "--nodes has http://localhost:8420 for b, which is where this node, a, listens",
    ]);
  });
});

describe("joining", () => {
  it("takes addresses, each once", () => {
    const environment = { BATON_JOIN: "10.0.0.2:2222, [::1]:1,10.0.0.2:2222" };
    assert.deepEqual(load({ environment }).settings.join, ["10.0.0.2:2222", "[::1]:1"]);
    const cases: [string, string][] = [
      ["10.0.0.2", 'must be an address such as 10.0.0.5:2222, not "10.0.0.2"'],
      ["http://h:1/x", 'must be an address such as 10.0.0.5:2222, not "http://h:1/x"; write h:1'],
      [":2222", 'must have a host and a port, such as 10.0.0.5:2222, not ":2222"'],
      ["h:65536", 'must be an address such as 10.0.0.5:2222, not "h:65536"'],
    ];
    for (const [join, message] of cases)
      assert.deepEqual(mistakes({ environment: { BATON_JOIN: join } }), [`BATON_JOIN ${message}`]);
  });

  it("through oneself is refused, however it is written", () => {
    const own = { BATON_MANAGER__USER: "user", BATON_MANAGER__PASS: "pass" };
    const cases: [string, string][] = [
      ["localhost:2222", "127.0.0.1:2222"],
      [":2222", "127.0.0.1:2222"],
      ["0.0.0.0:2222", "localhost:2222"],
      ["10.0.0.1:2222", "10.0.0.1:2222"],
      ["", "127.0.0.1:8420"],
    ];
    for (const [addr, join] of cases) {
      assert.deepEqual(mistakes({ environment: { ...own, BATON_MANAGER__ADDR: addr, BATON_JOIN: join } }), [
        `BATON_JOIN has this node's own address, ${join}; a node joins through another one`,
      ]);
    }
    load({ environment: { ...own, BATON_MANAGER__ADDR: "localhost:2222", BATON_JOIN: "10.0.0.1:2222" } });
  });

  it("needs user and password where others join, and a port of its own there", () => {
    assert.deepEqual(mistakes({ environment: { BATON_MANAGER__ADDR: ":1" } }), [
      "BATON_MANAGER__ADDR needs manager.user and manager.pass: the join server lets in who knows them",
    ]);
    const own = { BATON_MANAGER__USER: "user", BATON_MANAGER__PASS: "pass" };
    assert.deepEqual(mistakes({ environment: { ...own, BATON_MANAGER__ADDR: "localhost:8420" } }), [
      "BATON_MANAGER__ADDR must have a port of its own, other than http.port",
    ]);
    assert.deepEqual(mistakes({ environment: { BATON_MANAGER__USER: "abc", BATON_MANAGER__PASS: "xyz" } }), [
      'BATON_MANAGER__USER must have at least 4 characters, and no colon, not "abc"',
      "BATON_MANAGER__PASS must have at least 4 characters",
    ]);
  });

  it("by DNS takes a name, with or without a port or SRV records", () => {
    for (const discover of ["baton", "baton.internal.:8420", "srv:_baton._tcp.internal"])
      assert.equal(load({ flags: { discover } }).settings.discover, discover);
    for (const discover of ["http://x", "srv:x:1", "x:0", "x:99999", "-x", "a b"]) {
      const [mistake] = mistakes({ flags: { discover } });
      assert.match(mistake!, /^--discover must be a DNS name such as baton.internal, /, discover);
    }
  });
});

describe("looking up nodes", () => {
  const resolver: Resolver = {
    addresses: async () => ["10.0.0.2", "10.0.0.1", "fd00::1", "10.0.0.2"],
    srv: async () => [
      { name: "b.internal", port: 2 },
      { name: "a.internal.", port: 1 },
    ],
  };
  const look = (discover: string): Promise<string[]> =>
    discoverNodes(parseDiscovery(discover)!, 8420, resolver);

  it("gives every address once, with the port that was said or our own", async () => {
    const urls = ["http://10.0.0.1:8420", "http://10.0.0.2:8420", "http://[fd00::1]:8420"];
    assert.deepEqual(await look("baton"), urls);
    const expected = urls.map((url) => url.replace("8420", "81"));
    assert.deepEqual(await look("baton:81"), expected);
  });

  it("takes names and ports from SRV records", async () => {
    assert.deepEqual(await look("srv:_baton._tcp.internal"), ["http://a.internal:1", "http://b.internal:2"]);
  });

  it("asks the system like any program, so that localhost is known", async () => {
    const urls = await discoverNodes(parseDiscovery("localhost")!, 8420);
    assert.ok(
      urls.some((url) => url === "http://127.0.0.1:8420" || url === "http://[::1]:8420"),
      urls.join(),
    );
  });
});

describe("the fabric", () => {
  it("is picked by one line", () => {
    const picked = (flags: LoadOptions["flags"]): string => fabricOf(load({ flags }).settings);
    assert.equal(picked({}), "alone");
    assert.equal(picked({ store: "postgres://db/x" }), "postgres");
    assert.equal(picked({ nodes: NODES, name: "a" }), "peers");
    assert.equal(picked({ join: ["10.0.0.1:1"] }), "peers");
    assert.equal(picked({ discover: "baton" }), "peers");
  });
});

describe("the times of peers", () => {
  const flags = { nodes: NODES, name: "a" };

  it("hold in every profile", () => {
    for (const profile of PROFILE_NAMES) load({ flags: { ...flags, profile } });
    const { peers, leader } = load({ flags: { ...flags, profile: "slow-peers" } }).settings;
    assert.deepEqual(
      [peers.healthIntervalMs, peers.heartbeatTimeoutMs, peers.electionTimeoutMs, leader.retryMs],
      [2_000, 2_000, 3_000, 2_000],
    );
    const quiet = load({ flags: { ...flags, profile: "quiet-peers" } }).settings.peers;
    assert.deepEqual([quiet.healthIntervalMs, quiet.requestTimeoutMs], [5_000, 5_000]);
  });

  it("are judged only where there are peers", () => {
    const environment = { BATON_NODE__HEARTBEAT: "100ms", BATON_NODE__DEAD_AFTER: "400ms" };
    load({ environment });
    assert.deepEqual(mistakes({ environment, flags }), [
      "BATON_NODE__DEAD_AFTER (400ms) must be at least peers.health_interval (1s) + peers.heartbeat_timeout (1200ms): otherwise one slow answer looks like a death",
    ]);
    const [mistake] = mistakes({ environment: { BATON_PEERS__ELECTION_TIMEOUT: "700ms" }, flags });
    assert.match(
      mistake!,
      /^BATON_PEERS__ELECTION_TIMEOUT \(700ms\) is too long: four of it must fit into leader/,
    );
  });
});

describe("a secret", () => {
  it("comes from either of its variables, or from a file that one of them names", () => {
    writeFileSync(join(cwd, "s"), "from-a-file\n", { mode: 0o600 });
    const cases: [Record<string, string>, string][] = [
      [{ BATON_SECRET: "x" }, "x"],
      [{ BATON_CLUSTER__SECRET: "x" }, "x"],
      [{ BATON_SECRET_FILE: "s" }, "from-a-file"],
      [{ BATON_CLUSTER__SECRET_FILE: join(cwd, "s") }, "from-a-file"],
    ];
    for (const [environment, secret] of cases) {
      const { settings, warnings } = load({ environment });
      assert.equal(settings.cluster.secret, secret);
      assert.deepEqual(warnings, []);
    }
    assert.equal(
      load({ environment: { BATON_MANAGER__PASS_FILE: "s", BATON_MANAGER__USER: "user" } }).settings.manager
        .pass,
      "from-a-file",
    );
    writeFileSync(join(cwd, "store"), "postgres://db/x");
    assert.equal(load({ environment: { BATON_STORE_FILE: "store" } }).settings.store, "postgres://db/x");
  });

  it("is said once, and a file that cannot be read is told", () => {
    assert.deepEqual(mistakes({ environment: { BATON_SECRET: "x", BATON_SECRET_FILE: "y" } }), [
      "BATON_SECRET and BATON_SECRET_FILE both set cluster.secret; set one of them",
    ]);
    assert.deepEqual(mistakes({ environment: { BATON_SECRET_FILE: "nope" } }), [
      `BATON_SECRET_FILE cannot be read (${join(cwd, "nope")}): there is no such file`,
    ]);
    writeFileSync(join(cwd, "empty"), "\n");
    assert.deepEqual(mistakes({ environment: { BATON_SECRET_FILE: "empty" } }), [
      `BATON_SECRET_FILE names an empty file (${join(cwd, "empty")})`,
    ]);
    // Only what may hold a password has a file: a port has none.
    assert.equal(mistakes({ environment: { BATON_HTTP__PORT_FILE: "x" } }).length, 1);
  });

  it("in a file that everybody can read is warned about", { skip: process.platform === "win32" }, () => {
    const file = join(cwd, "open");
    writeFileSync(file, "x");
    chmodSync(file, 0o644);
    assert.deepEqual(load({ environment: { BATON_SECRET_FILE: "open" } }).warnings.map(adviceText), [
      `${file} (BATON_SECRET_FILE) can be read by every user; type: chmod 600 ${file}`,
    ]);
  });

  it("is repeated in no mistake, and its mask is not taken for it", () => {
    write("cluster: { secret: 123456 }\nmanager: { pass: [hidden] }\n");
    assert.deepEqual(mistakes({}), [
      "baton.yaml:1:20: cluster.secret must be text; write it in quotes",
      "baton.yaml:2:18: manager.pass must be text; write it in quotes",
    ]);
    rmSync(join(cwd, "baton.yaml"));
    assert.deepEqual(mistakes({ environment: { BATON_SECRET: "***" } }), [
      "BATON_SECRET is ***, as `baton config print` shows it; write the real one",
    ]);
  });
});

describe("addresses", () => {
  it("are parsed with names, numbers and brackets", () => {
    assert.deepEqual(parseAddress("[::1]:22"), { host: "::1", port: 22 });
    assert.deepEqual(parseAddress(":22"), { host: "", port: 22 });
    assert.deepEqual(parseAddress("my_host.x:0"), { host: "my_host.x", port: 0 });
    for (const text of ["", "h", "h:", "::1:22", "[x]:1", "h:99999", "a b:1", "user@h:1"])
      assert.equal(parseAddress(text), null, text);
  });

  it("of a name are listened to everywhere", () => {
    assert.equal(listeningHost("node-a"), "0.0.0.0");
    assert.equal(listeningHost("[fe80::1]"), "fe80::1");
    assert.ok(!reaches({ host: "node-b", port: 1 }, { host: "0.0.0.0", port: 1 }));
  });
});

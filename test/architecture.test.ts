import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import {
  keeperOf,
  machineTraces,
  Sources,
  type Exceptions,
  type SourceFile,
} from "./support/architecture.ts";
import { readSource } from "./support/source-text.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

function read(pattern: string): SourceFile[] {
  const ignored = /(?:^|\/)(?:node_modules|\.git|\.baton|dist|coverage|bench\/results)(?:\/|$)/;
  return globSync(pattern, { cwd: root, withFileTypes: true, exclude: (entry) => ignored.test(entry.name) })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length).split(sep).join("/"))
    .filter((path) => !ignored.test(path))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

/** Where the way into src begins: what is exported, what is run, and what a thread is made of. */
const ENTRIES = [
  "src/index.ts",
  "src/client/client.ts",
  "src/cli/main.ts",
  "src/jobs/thread-main.ts",
  "src/agent/link-main.ts",
  "src/config/write-docs.ts",
];

const NOT_WIRED_YET: Exceptions = {
  "src/platform/manual-clock.ts": "the clock of tests and of the simulation",
  "src/transport/memory.ts": "the network of tests and of the simulation",
};

const CLOCK_READERS: Exceptions = {
  "src/platform/clock.ts": "the one place that reads clocks",
};
const CHANCE_MAKERS: Exceptions = {
  "src/platform/random.ts": "the one place that makes randomness",
};

const MESSAGE_READERS: Exceptions = {
  "src/api/invalid.ts": "rewords the sentence of a JSON schema validator, which has no part without `must`",
  "src/api/operations/node.ts": "`power loss` and `process crash` are values of the API, not sentences",
  "src/api/operations/submit.ts": "shows the field at fault by another name in the same sentence",
  "src/channels/redis/queue-keys.ts": "Redis puts the code of an error reply at the start of its text",
  "src/cli/banner.ts": "`power loss` and `process crash` are values of the API, not sentences",
  "src/cli/json-text.ts": "V8 tells the position of a mistake in JSON only in its message",
  "src/cluster/readiness.ts":
    "shows the system's error code; drivers of etcd and Redis put it only into the text",
  "src/coordination/etcd/gateway-errors.ts":
    "etcd uses one gRPC code for several refusals; only the text differs",
  "src/metrics/leader-metrics.ts": "refused writes have no code yet",
  "src/platform/drivers/postgres-errors.ts": "the driver throws lost connections as errors without a code",
  "src/platform/drivers/redis-errors.ts": "Redis puts the code of an error reply at the start of its text",
  "src/transport/mesh/acceptor.ts": "removes characters that a header may not have",
  "src/transport/mesh/dial.ts": "does not repeat a code that Node.js has put into its message",
};
const PAGE_MESSAGE_READERS: Exceptions = {
  "dashboard/src/parts/submission.ts":
    "does not repeat the name of the field that the message stands next to",
  "dashboard/src/screens/log-book.ts": "removes control characters from a log line",
};

const LINES_MAX = 400;
const LONG_FILES = {};

const src = new Sources(read("src/**/*.ts"));
const declared = new Set(
  Object.keys(
    (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { dependencies: Record<string, string> })
      .dependencies,
  ),
);

describe("the tree of src", () => {
  it("was found", () => assert.ok(src.files.length > 100, `${src.files.length} files`));

  const rules: [string, () => string[]][] = [
    ["core imports only core", () => src.coreImportsOnlyCore()],
    ["platform imports only core and itself", () => src.platformImportsOnlyCoreAndItself()],
    ["a keeper of a port imports no other keeper", () => src.keepersImportNoOtherKeeper()],
    ["only a port's open.ts knows its keepers", () => src.onlyOpenKnowsKeepers()],
    ["nothing of test, bench or examples is imported", () => src.sourcesImportOnlySources()],
    ["every package that is imported is a dependency", () => src.packagesAreDeclared(declared)],
    ["nobody but the clock reads a clock", () => src.nobodyReadsClocks(CLOCK_READERS)],
    ["nobody but platform/random makes randomness", () => src.nobodyMakesChance(CHANCE_MAKERS)],
    ["no code decides by the text of a message", () => src.noCodeReadsMessages(MESSAGE_READERS)],
    [`no file has more than ${LINES_MAX} lines`, () => src.filesAreShort(LINES_MAX, LONG_FILES)],
    ["an entry point leads to every file", () => src.everyFileIsReached(ENTRIES, NOT_WIRED_YET)],
  ];
  for (const [rule, broken] of rules) it(rule, () => assert.deepEqual(broken(), []));
});

const page = new Sources(read("dashboard/src/**/*.{ts,tsx}"));

describe("the tree of the dashboard", () => {
  it("was found", () => assert.ok(page.files.length > 30, `${page.files.length} files`));

  it(`has no file of more than ${LINES_MAX} lines`, () => {
    assert.deepEqual(page.filesAreShort(LINES_MAX, {}), []);
  });

  it("decides nothing by the text of a message", () => {
    assert.deepEqual(page.noCodeReadsMessages(PAGE_MESSAGE_READERS), []);
  });

  it("never makes markup out of text", () => {
    const ways =
      /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function/;
    const found = page.files.filter(({ text }) => ways.test(text)).map(({ path }) => path);
    assert.deepEqual(found, []);
  });

  it("takes from src only types, and what knows nothing of Node", () => {
    const found = page.files.flatMap(({ path, text }) =>
      [...text.matchAll(/^import (?!type )[^;]*? from "(?:\.\.\/)+src\/([^"]+)";$/gm)]
        .filter((match) => !/^(?:core\/|client\/address\.ts$)/.test(match[1]!))
        .map((match) => `${path} imports ${match[1]}`),
    );
    assert.deepEqual(found, []);
  });
});

describe("the files of the repository", () => {
  it("name no path of one machine and no registry", () => {
    const files = ["*", ".*", ".ci/*", "{bench,bin,dashboard,docs,examples,scripts,src,test}/**/*"].flatMap(
      read,
    );
    assert.ok(files.some(({ path }) => path === "package-lock.json"));
    assert.deepEqual(machineTraces(files, root.replace(/[\\/]$/, "")), []);
  });
});

describe("the checker", () => {
  function planted(files: Readonly<Record<string, string>>): Sources {
    return new Sources(Object.entries(files).map(([path, text]) => ({ path, text })));
  }

  it("finds core reaching out, by whatever form of import", () => {
    const sources = planted({
      "src/core/a.ts": [
        'import { b } from "./b.ts";',
        'import type { Clock } from "../platform/clock.ts";',
        'export * from "../jobs/task.ts";',
        'const fs = await import("node:fs");',
        'import "zod";',
      ].join("\n"),
    });
    assert.deepEqual(sources.coreImportsOnlyCore(), [
      "src/core/a.ts:2 imports ../platform/clock.ts",
      "src/core/a.ts:3 imports ../jobs/task.ts",
      "src/core/a.ts:4 imports node:fs",
      "src/core/a.ts:5 imports zod",
    ]);
  });

  it("finds an import that spans lines", () => {
    const sources = planted({
      "src/core/a.ts": 'import {\n  b,\n  // from "./b.ts"\n} from "../http/b.ts";',
    });
    assert.deepEqual(sources.coreImportsOnlyCore(), ["src/core/a.ts:4 imports ../http/b.ts"]);
  });

  it("finds a platform that knows what is above it", () => {
    const sources = planted({
      "src/platform/a.ts": 'import "../store/store.ts"; import "node:fs"; import "pino";',
    });
    assert.deepEqual(sources.platformImportsOnlyCoreAndItself(), [
      "src/platform/a.ts:1 imports ../store/store.ts",
    ]);
  });

  it("finds keepers that know each other, of one port or of two", () => {
    const sources = planted({
      "src/store/sqlite/jobs.ts": 'import "../memory/jobs.ts"; import "./claim.ts"; import "../store.ts";',
      "src/coordination/standalone/lock.ts": 'import "../../store/sqlite/terms.ts";',
      "src/transport/http.ts": 'import "./http-call.ts"; import "./memory.ts"; import "./outcome.ts";',
    });
    assert.deepEqual(sources.keepersImportNoOtherKeeper(), [
      "src/store/sqlite/jobs.ts:1 imports ../memory/jobs.ts",
      "src/coordination/standalone/lock.ts:1 imports ../../store/sqlite/terms.ts",
      "src/transport/http.ts:1 imports ./memory.ts",
    ]);
  });

  it("knows a keeper when it sees one", () => {
    assert.equal(keeperOf("src/store/sqlite/claim.ts"), "store/sqlite");
    assert.equal(keeperOf("src/transport/http-call.ts"), "transport/http");
    assert.equal(keeperOf("src/transport/outcome.ts"), null);
    assert.equal(keeperOf("src/store/store.ts"), null);
    assert.equal(keeperOf("src/jobs/task.ts"), null);
  });

  it("finds a service that goes past a port", () => {
    const sources = planted({
      "src/store/open.ts": 'import "./sqlite/sqlite.ts";',
      "src/jobs/worker.ts": 'import type { Ledger } from "../store/sqlite/ledger.ts";',
    });
    assert.deepEqual(sources.onlyOpenKnowsKeepers(), [
      "src/jobs/worker.ts:1 imports ../store/sqlite/ledger.ts",
    ]);
  });

  it("finds tests and undeclared packages among the sources", () => {
    const sources = planted({
      "src/a.ts":
        'import "../test/support/script.ts"; import "zod/v4"; import "@a/b/c"; import "eld"; import "node:fs/promises";',
    });
    assert.deepEqual(sources.sourcesImportOnlySources(), ["src/a.ts:1 imports ../test/support/script.ts"]);
    assert.deepEqual(sources.packagesAreDeclared(new Set(["zod", "@a/b"])), ["src/a.ts:1 imports eld"]);
  });

  it("finds every way to read a clock", () => {
    const ways = [
      "Date.now()",
      "new Date()",
      "new Date;",
      "Date()",
      "performance.now()",
      "process.hrtime.bigint()",
      "process.uptime()",
      "setTimeout(f, 1)",
      "globalThis.setInterval(f, 1)",
      "const later = setTimeout;",
      "AbortSignal.timeout(5)",
      'import { setTimeout as sleep } from "node:timers/promises";',
      'import { performance } from "perf_hooks";',
      "prepare(\"SELECT datetime('now')\")",
      "prepare(`INSERT INTO t VALUES (${a}, CURRENT_TIMESTAMP)`)",
    ];
    for (const way of ways) {
      const found = planted({ "src/a.ts": `\n${way}` }).nobodyReadsClocks({});
      assert.ok(found.length > 0 && found[0]!.startsWith("src/a.ts:2 reads a clock"), way);
    }
  });

  it("lets pass what only looks like it", () => {
    const harmless = [
      "new Date(at)",
      "new Date(0).toISOString()",
      "Date.parse(text)",
      "Date.UTC(2026, 0, 1)",
      "socket.setTimeout(5)",
      "// Date.now()",
      "/* setTimeout(f, 1) */",
      '"Math.random() and Date.now()"',
      "`${a} Date.now()`",
      "/Date.now()/.test(x)",
      "const update = (at: number) => at;",
      "chance()",
      "setImmediate(f)",
      "const DateLike = 1",
    ];
    for (const text of harmless) {
      const sources = planted({ "src/a.ts": text });
      assert.deepEqual([...sources.nobodyReadsClocks({}), ...sources.nobodyMakesChance({})], [], text);
    }
  });

  it("finds every way to make randomness", () => {
    const ways = [
      "Math.random()",
      'import { randomUUID } from "node:crypto";',
      "crypto.randomUUIDv7()",
      "randomBytes(4)",
      "crypto.getRandomValues(a)",
      '"SELECT random()"',
    ];
    for (const way of ways) assert.equal(planted({ "src/a.ts": way }).nobodyMakesChance({}).length, 1, way);
  });

  it("looks into the holes of templates and behind patterns with quotes", () => {
    for (const text of [
      "`a ${Date.now()} b`",
      'x.replace(/["\'`]/g, ""); Date.now()',
      "a / b; Date.now(); c / d",
      "`${`${Date.now()}`}`",
    ]) {
      assert.equal(planted({ "src/a.ts": text }).nobodyReadsClocks({}).length, 1, text);
    }
  });

  it("finds code that decides by the text of a message", () => {
    const ways = [
      'if (error.message.includes("timeout")) retry();',
      'if (exit?.reason.startsWith("asked")) stop();',
      "if (/closed/.test((error as Error).message)) retry();",
      "const code = /\\(([A-Z_]+)\\)/.exec(error.message)?.[1];",
      "const [, name] = /^(\\S+) leads under/.exec(line) ?? [];",
      "const [message, remedy] = line.split(/; (?=did you mean )/);",
      'if (what.startsWith("the renewal of")) count++;',
      'if (why === "not confirmed in time") count++;',
      'const LABELS = { "not confirmed in time": "lapsed" };',
      "const note = text.slice(`${name} is draining, `.length);",
      'throw new Mistake(error.message.replace(/^the URL of Redis /, ""));',
    ];
    for (const way of ways) {
      const found = planted({ "src/a.ts": `\n${way}` }).noCodeReadsMessages({});
      assert.ok(found[0]?.startsWith("src/a.ts:2 decides by the text of a message"), way);
    }
    const harmless = [
      'if (reason === "rebalance") return;',
      'log.warn({ reason }, "not confirmed in time");',
      'const first = error.message.split("\\n", 1)[0];',
      'const help = ready ? "is ready now" : "is not ready";',
      'if (hasCode(error, "STOPPED")) throw error;',
      "/* error.message.includes(x) */",
    ];
    for (const text of harmless)
      assert.deepEqual(planted({ "src/a.ts": text }).noCodeReadsMessages({}), [], text);
    const sources = planted({ "src/a.ts": ways[0]!, "src/b.ts": "" });
    assert.deepEqual(sources.noCodeReadsMessages({ "src/a.ts": "reason", "src/b.ts": "reason" }), [
      "the exception for src/b.ts is not needed any more",
    ]);
  });

  it("honours an exception, and complains of one that is not needed", () => {
    const sources = planted({ "src/a.ts": "Date.now()", "src/b.ts": "" });
    assert.deepEqual(sources.nobodyReadsClocks({ "src/a.ts": "reason" }), []);
    assert.deepEqual(sources.nobodyReadsClocks({ "src/a.ts": "reason", "src/b.ts": "reason" }), [
      "the exception for src/b.ts is not needed any more",
    ]);
  });

  it("finds files that are too long, and exceptions that grew or shrank", () => {
    const long = "line\n".repeat(12);
    const sources = planted({ "src/a.ts": long, "src/b.ts": "line\n" });
    assert.deepEqual(sources.filesAreShort(12, {}), []);
    assert.deepEqual(sources.filesAreShort(11, {}), [
      "src/a.ts has 12 lines, more than 11; split it by subject",
    ]);
    assert.deepEqual(sources.filesAreShort(10, { "src/a.ts": { max: 12, reason: "" } }), []);
    assert.equal(sources.filesAreShort(10, { "src/a.ts": { max: 11, reason: "" } }).length, 1);
    assert.deepEqual(sources.filesAreShort(20, { "src/a.ts": { max: 30, reason: "" } }), [
      "the exception for src/a.ts is not needed any more",
    ]);
  });

  it("finds dead files, and follows dynamic imports and re-exports", () => {
    const sources = planted({
      "src/main.ts": 'await import("./late.ts"); export * from "./again.ts";',
      "src/late.ts": "",
      "src/again.ts": "",
      "src/dead.ts": 'import "./also-dead.ts";',
      "src/also-dead.ts": "",
    });
    assert.deepEqual(sources.everyFileIsReached(["src/main.ts"], {}), [
      "nothing leads to src/dead.ts",
      "nothing leads to src/also-dead.ts",
    ]);
    assert.deepEqual(sources.everyFileIsReached(["src/main.ts"], { "src/dead.ts": "reason" }), []);
    assert.deepEqual(
      sources.everyFileIsReached(["src/main.ts", "src/dead.ts"], { "src/late.ts": "reason" }),
      ["the exception for src/late.ts is not needed any more"],
    );
  });

  it("finds traces of a machine", () => {
    // With a mark in the middle that is taken out, because this file is looked at too.
    const lines = [
      "see /ho~me/ann/x",
      "C:\\Us~ers\\ann",
      "https://regis~try.npmjs.org/zod",
      "/srv/baton/src",
    ];
    const files = lines.map((text, index) => ({
      path: `file-${index}`,
      text: `fine\n${text.replace("~", "")}`,
    }));
    const found = machineTraces(files, "/srv/baton");
    assert.deepEqual(
      found.map((each) => each.split(" ")[0]),
      ["file-0:2", "file-1:2", "file-2:2", "file-3:2"],
    );
    assert.deepEqual(machineTraces([{ path: "a", text: "~/home/x ./home/x /usr/bin/node" }], "/srv/x"), []);
  });

  it("reads texts, code and imports apart", () => {
    const { code, texts, imports } = readSource(`const a = "x"; // "y"\nimport b from 'z';`);
    assert.equal(code, `const a = " ";       \nimport b from ' ';`);
    assert.deepEqual(
      texts.map(({ text }) => text),
      ["x", "z"],
    );
    assert.deepEqual(imports, [{ at: 37, from: "z" }]);
  });
});

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

const BACKEND_ASKERS: Exceptions = {
  "src/cli/doctor/checks.ts": "examines what the settings name, before anything is open",
  "src/cli/doctor/doctor.ts": "examines what the settings name, before anything is open",
  "src/cli/token.ts": "explains why a store that the settings name cannot be opened from outside",
  "src/client/cluster-connection.ts":
    "reads a node's status, and nodes of earlier versions send only the name",
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
    ["nobody above an interface asks for a backend's name", () => src.nobodyAsksForABackend(BACKEND_ASKERS)],
    ["nothing of test, bench or examples is imported", () => src.sourcesImportOnlySources()],
    ["every package that is imported is a dependency", () => src.packagesAreDeclared(declared)],
    ["nobody but the clock reads a clock", () => src.nobodyReadsClocks(CLOCK_READERS)],
    ["nobody but platform/random makes randomness", () => src.nobodyMakesChance(CHANCE_MAKERS)],
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

  it("finds code that asks for a backend's name", () => {
    const sources = planted({
      "src/access/a.ts": 'if (store.guarantees.name === "sqlite") f();',
      "src/jobs/b.ts": 'const wakes = channels.kind !== "postgres";',
      "src/api/c.ts": "if (isPostgresUrl(settings.store)) f();",
      "src/cli/d.ts": 'if (settings.store === "memory") f();',
      "src/cli/e.ts": "print(channels.kind); if (store.guarantees.shared) f();",
      "src/store/sqlite/f.ts": 'guarantees.name === "sqlite"',
    });
    assert.deepEqual(sources.nobodyAsksForABackend({}), [
      "src/access/a.ts:1 asks for a backend's name: guarantees.name ===",
      "src/jobs/b.ts:1 asks for a backend's name: channels.kind !==",
      "src/api/c.ts:1 asks for a backend's name: isPostgresUrl(",
      "src/cli/d.ts:1 asks for a backend's name: settings.store ===",
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

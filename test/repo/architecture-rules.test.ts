/** That each rule of the tree can fail: sources with a violation are planted in memory. Paths here are made up, so nothing renames them. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { backendOf, machineTraces, Sources } from "../support/architecture.ts";
import { readSource } from "../support/source-text.ts";
import {
  folderCycles,
  foldersAreSmall,
  forwardReferences,
  LAYERS,
  layersInOrder,
  longFilesExplainThemselves,
  noPartsFiles,
} from "../support/tree-rules.ts";
import { column } from "../support/columns.ts";

function planted(files: Readonly<Record<string, string>>): Sources {
  return new Sources(Object.entries(files).map(([path, text]) => ({ path, text })));
}

describe("the checker", () => {
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

  it("finds backends that know each other, of one interface or of two", () => {
    const sources = planted({
      "src/store/sqlite/jobs.ts": 'import "../memory/jobs.ts"; import "./claim.ts"; import "../store.ts";',
      "src/leadership/standalone/lock.ts": 'import "../../store/sqlite/terms.ts";',
    });
    assert.deepEqual(sources.backendsImportNoOtherBackend(), [
      "src/store/sqlite/jobs.ts:1 imports ../memory/jobs.ts",
      "src/leadership/standalone/lock.ts:1 imports ../../store/sqlite/terms.ts",
    ]);
  });

  it("knows a backend by its path", () => {
    assert.equal(backendOf("src/store/sqlite/claim.ts"), "store/sqlite");
    assert.equal(backendOf("src/transport/mesh/mesh-server.ts"), "transport/mesh");
    assert.equal(backendOf("src/transport/signing/signing.ts"), null);
    assert.equal(backendOf("src/peers/bully/election/voter.ts"), "peers/bully");
    assert.equal(backendOf("src/store/store.ts"), null);
    assert.equal(backendOf("src/jobs/task.ts"), null);
  });

  it("finds a service that goes past an interface", () => {
    const sources = planted({
      "src/store/open.ts": 'import "./sqlite/sqlite.ts";',
      "src/leadership/open-coordination.ts": 'import "./etcd/lock.ts";',
      "src/peers/open-peers.ts": 'import "./bully/lock.ts"; import "../leadership/standalone/lock.ts";',
      "src/jobs/worker.ts": 'import type { Ledger } from "../store/sqlite/ledger.ts";',
    });
    assert.deepEqual(sources.onlyOpenKnowsBackends(), [
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
    assert.deepEqual(column(texts, "text"), ["x", "z"]);
    assert.deepEqual(imports, [{ at: 37, from: "z" }]);
  });
});

describe("the rules of folders", () => {
  it("find a cycle of folders, also of three and by types alone", () => {
    const { files } = planted({
      "src/a/x.ts": 'import "../b/x.ts";',
      "src/b/x.ts": 'import type { C } from "../c/x.ts";',
      "src/c/x.ts": 'import "../a/x.ts"; import "../d/x.ts";',
      "src/d/x.ts": "",
    });
    assert.deepEqual(folderCycles(files), [
      "src/a/x.ts:1 imports ../b/x.ts, so that src/a and src/b need each other",
      "src/b/x.ts:1 imports ../c/x.ts, so that src/b and src/c need each other",
      "src/c/x.ts:1 imports ../a/x.ts, so that src/c and src/a need each other",
    ]);
  });

  it("find a cycle of sub-folders, and let a folder be on both sides of its own", () => {
    const { files } = planted({
      "src/store/open.ts": 'import "./sqlite/store.ts";',
      "src/store/store.ts": "",
      "src/store/sqlite/store.ts": 'import "../store.ts"; import "./jobs/claim.ts";',
      "src/store/sqlite/jobs/claim.ts": 'import "../store.ts";',
    });
    assert.deepEqual(folderCycles(files), []);
    const crossed = planted({
      "src/jobs/run/worker.ts": 'import "../tasks/task.ts";',
      "src/jobs/tasks/task.ts": 'import "../run/worker.ts";',
    });
    assert.equal(folderCycles(crossed.files).length, 2);
  });

  it("find a folder with too many files, and count its sub-folders apart", () => {
    const { files } = planted({ "src/a/1.ts": "", "src/a/2.ts": "", "src/a/3.ts": "", "src/a/b/4.ts": "" });
    assert.deepEqual(foldersAreSmall(files, 3), []);
    assert.deepEqual(foldersAreSmall(files, 2), ["src/a has 3 files, more than 2; group them by subject"]);
  });

  it("find a long file that does not say what it does", () => {
    const long = "line();\n".repeat(4);
    const { files } = planted({
      "src/silent.ts": long,
      "src/explained.ts": `/** Does it. */\n${long}`,
      "src/run.ts": `#!/usr/bin/env node\n// Runs it.\n${long}`,
      "src/late.ts": `import "../run.ts";\n/** Too late. */\n${long}`,
      "src/short.ts": "line();",
    });
    assert.deepEqual(longFilesExplainThemselves(files, 3), [
      "src/silent.ts has more than 3 lines and does not begin with a comment",
      "src/late.ts has more than 3 lines and does not begin with a comment",
    ]);
  });

  it("find files that are named for a kind", () => {
    const { files } = planted({
      "src/node-parts.ts": "",
      "src/bully/parts.ts": "",
      "src/counterparts.ts": "",
    });
    assert.deepEqual(
      noPartsFiles(files).map((each) => each.split(" ")[0]),
      ["src/node-parts.ts", "src/bully/parts.ts"],
    );
  });
});

describe("the rule of layers", () => {
  const whole = Object.fromEntries(LAYERS.map((layer) => [`src/node/${layer}.ts`, ""]));

  it("lets each layer know those before it", () => {
    const { files } = planted({
      ...whole,
      "src/node/work-push.ts": 'import "./backend.ts"; import "../jobs/entry.ts";',
      "src/node/work.ts": 'import "./work-push.ts"; import "./platform.ts"; import "./state.ts";',
      "src/node/state.ts": 'import "./platform.ts";',
      "src/node/node.ts": 'import "./entry.ts"; import "./platform.ts";',
    });
    assert.deepEqual(layersInOrder(files), []);
  });

  it("finds a layer that knows a later one, also by a way round", () => {
    const { files } = planted({
      ...whole,
      "src/node/backend-peers.ts": 'import type { Work } from "./work.ts";',
      "src/node/elections.ts": '\nimport "./helper.ts";',
      "src/node/helper.ts": 'import "./duties.ts";',
    });
    assert.deepEqual(layersInOrder(files), [
      "src/node/elections.ts:2 imports ./helper.ts, which leads to duties.ts: elections comes before duties",
      "src/node/backend-peers.ts:1 imports ./work.ts: backend comes before work",
    ]);
  });

  it("finds that a layer is missing", () => {
    const { files } = planted({ ...whole, "src/node/duties.ts": "" });
    assert.deepEqual(layersInOrder(files), []);
    assert.deepEqual(layersInOrder(files.filter(({ path }) => !path.endsWith("duties.ts"))), [
      "src/node has no layer duties",
    ]);
  });
});

describe("the rule of forward references", () => {
  const found = (text: string): string[] =>
    forwardReferences(planted({ "src/node/a.ts": text }).files, ["src/node"]);

  it("finds a thunk that points at a later const", () => {
    for (const text of [
      "function f() {\n const a = new A({ b: () => b });\n const b = new B(a);\n}",
      "function f() {\n const a = new A({ on: (x) => b.take(x) });\n const { b } = make(a);\n}",
      "function f() {\n const a = { start() { return b.start(); } };\n const [b, c] = make(a);\n}",
      "const f = (): void => {\n const a = () => ({ b });\n const b: B = make(a);\n};",
      "class C { constructor() {\n const a = new A(() => b);\n const b = new B();\n} }",
    ]) {
      assert.deepEqual(found(text), ["src/node/a.ts:2 uses b, which is made on line 3"], text);
    }
  });

  it("finds options named later", () => {
    assert.deepEqual(found("interface O {\n readonly later: () => Jobs;\n}"), [
      "src/node/a.ts:2 has an option `later`",
    ]);
    assert.equal(found("f(options.later.jobs)").length, 1);
    assert.equal(found("open({ later: { http } })").length, 1);
  });

  it("lets pass what only looks like it", () => {
    for (const text of [
      "function f() { const a = 1; const b = () => a; }",
      "function f() { const ids = jobs.map((job) => job.id); const job = ids[0]; }",
      "function f() { const ids = jobs.map(({ job }) => { return job; }); const job = ids[0]; }",
      "function f() { const a = { b: 1, c: x.b }; const b = a; }",
      "function f() { const a = { b() { return 1; } }; const b = a; }",
      "function f() { for (const x of y) { const b = x; use(b); } const b = 2; }",
      "function f() { for (const b of c) if (b) break; const b = 2; }",
      "function f() { g(); } const later = 1; function g() { return later; }",
      "function f() { return TABLE; } const TABLE = 1;",
      "function f() { /* b */ const a = 'b'; const b = a; }",
    ]) {
      assert.deepEqual(found(text), [], text);
    }
    assert.deepEqual(forwardReferences(planted({ "src/jobs/a.ts": "f(o.later)" }).files, ["src/node"]), []);
  });
});

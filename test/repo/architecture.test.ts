import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { machineTraces, Sources, type Exceptions, type SourceFile } from "../support/architecture.ts";
import {
  folderCycles,
  foldersAreSmall,
  forwardReferences,
  layersInOrder,
  longFilesExplainThemselves,
  noPartsFiles,
} from "../support/tree-rules.ts";
import { column } from "../support/columns.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

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
  "src/client/baton-client.ts",
  "src/library/servers/fastify.ts",
  "src/library/servers/express.ts",
  "src/library/otel.ts",
  "src/library/testing.ts",
  "src/cli/main.ts",
  "src/jobs/run/thread-main.ts",
  "src/agent/controller-link-main.ts",
];

const CLOCK_READERS: Exceptions = {
  "src/platform/clock.ts": "the one place that reads clocks",
};
const CHANCE_MAKERS: Exceptions = {
  "src/platform/random.ts": "the one place that makes randomness",
};

const MESSAGE_READERS: Exceptions = {
  "src/api/schema/invalid-input.ts":
    "rewords the sentence of a JSON schema validator, which has no part without `must`",
  "src/api/operations/cluster/node-status.ts":
    "`power loss` and `process crash` are values of the API, not sentences",
  "src/channels/redis/queue-scripts.ts": "Redis puts the code of an error reply at the start of its text",
  "src/cli/process/banner.ts": "`power loss` and `process crash` are values of the API, not sentences",
  "src/cli/jobs/payload.ts": "V8 tells the position of a mistake in JSON only in its message",
  "src/leadership/etcd/gateway-errors.ts":
    "etcd uses one gRPC code for several refusals; only the text differs",
  "src/platform/drivers/postgres/errors.ts": "the driver throws lost connections as errors without a code",
  "src/platform/drivers/redis/errors.ts": "Redis puts the code of an error reply at the start of its text",
  "src/transport/mesh/acceptor.ts": "removes characters that a header may not have",
  "src/transport/mesh/dial.ts": "does not repeat a code that Node.js has put into its message",
};
const PAGE_MESSAGE_READERS: Exceptions = {
  "dashboard/src/parts/submission.ts":
    "does not repeat the name of the field that the message stands next to",
  "dashboard/src/screens/log-book.ts": "removes control characters from a log line",
};

const BACKEND_ASKERS: Exceptions = {
  "src/cli/doctor/checks.ts": "examines what the settings name, before anything is open",
  "src/cli/doctor/doctor.ts": "examines what the settings name, before anything is open",
  "src/cli/admin/access.ts": "explains why a store that the settings name cannot be opened from outside",
  "src/client/connection/cluster-connection.ts":
    "reads a node's status, and nodes of earlier versions send only the name",
};

const LINES_MAX = 400;
const LONG_FILES = {};
const FOLDER_FILES_MAX = 20;
const UNEXPLAINED_LINES_MAX = 60;

/** Where everything is built from finished objects. */
const FORWARD_ONLY = ["src/node", "src/peers/bully", "src/push/ownership"];

const src = new Sources(read("src/**/*.ts"));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
};
const optional = Object.keys(manifest.peerDependencies);
const declared = new Set([...Object.keys(manifest.dependencies), ...optional]);

describe("the tree of src", () => {
  it("was found", () => assert.ok(src.files.length > 100, `${src.files.length} files`));

  it("imports only types of optional packages: their values are loaded with an error that says what to type", () => {
    const value = new RegExp(
      `^import (?!type )[^;]*? from "(?:${optional.join("|")})";$|import\\("(?:${optional.join("|")})"\\)`,
      "m",
    );
    assert.deepEqual(
      column(
        src.files.filter(({ text }) => value.test(text)),
        "path",
      ),
      [],
    );
  });

  const rules: [string, () => string[]][] = [
    ["core imports only core", () => src.coreImportsOnlyCore()],
    ["platform imports only core and itself", () => src.platformImportsOnlyCoreAndItself()],
    ["a backend imports no other backend", () => src.backendsImportNoOtherBackend()],
    ["only the file that opens an interface knows its backends", () => src.onlyOpenKnowsBackends()],
    ["no code above an interface asks for a backend's name", () => src.nobodyAsksForABackend(BACKEND_ASKERS)],
    ["nothing of test, bench or examples is imported", () => src.sourcesImportOnlySources()],
    ["every package that is imported is a dependency", () => src.packagesAreDeclared(declared)],
    ["nobody but the clock reads a clock", () => src.nobodyReadsClocks(CLOCK_READERS)],
    ["nobody but platform/random makes randomness", () => src.nobodyMakesChance(CHANCE_MAKERS)],
    ["no code decides by the text of a message", () => src.noCodeReadsMessages(MESSAGE_READERS)],
    [`no file has more than ${LINES_MAX} lines`, () => src.filesAreShort(LINES_MAX, LONG_FILES)],
    ["an entry point leads to every file", () => src.everyFileIsReached(ENTRIES, {})],
    ["folders import in one direction", () => folderCycles(src.files)],
    ["a layer of a node knows only earlier layers", () => layersInOrder(src.files)],
    ["nothing refers to what is built later", () => forwardReferences(src.files, FORWARD_ONLY)],
    [`a folder has at most ${FOLDER_FILES_MAX} files`, () => foldersAreSmall(src.files, FOLDER_FILES_MAX)],
    [
      `a file of more than ${UNEXPLAINED_LINES_MAX} lines begins with a comment`,
      () => longFilesExplainThemselves(src.files, UNEXPLAINED_LINES_MAX),
    ],
    ["no file is named for its kind", () => noPartsFiles(src.files)],
  ];
  for (const [rule, broken] of rules) {
    it(rule, () => assert.deepEqual(broken(), []));
  }
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
        .filter(
          (match) =>
            !/^(?:core\/|platform\/(?:clock|loop)\.ts$|client\/(?:route-request|client-error|streams\/(?:resumable-stream|event-parser))\.ts$)/.test(
              match[1]!,
            ),
        )
        .map((match) => `${path} imports ${match[1]}`),
    );
    assert.deepEqual(found, []);
  });
});

describe("the files of the repository", () => {
  it("name no path of one machine and no registry", () => {
    const files = [
      "*",
      ".*",
      ".ci/*",
      "{bench,bin,dashboard,docs,examples,scripts,src,template,test}/**/*",
    ].flatMap(read);
    assert.ok(files.some(({ path }) => path === "package-lock.json"));
    assert.deepEqual(machineTraces(files, root.replace(/[\\/]$/, "")), []);
  });
});

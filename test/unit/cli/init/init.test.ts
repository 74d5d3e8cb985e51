import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { VERSION } from "../../../../src/platform/version.ts";
import { suiteDirectory } from "../../../support/node-cleanup.ts";
import { runCli } from "../run-cli.ts";

const cwd = suiteDirectory();
const FILES = [
  ".gitignore",
  "Dockerfile",
  "README.md",
  "compose.yaml",
  "package.json",
  "tasks/greet.ts",
  "test/greet.test.ts",
  "tsconfig.json",
];

function directory(name: string): string {
  const path = join(cwd, name);
  mkdirSync(path, { recursive: true });
  return path;
}

function filesIn(path: string): string[] {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(path.length + 1))
    .sort();
}

function nameIn(path: string): string {
  return (JSON.parse(readFileSync(join(path, "package.json"), "utf8")) as { name: string }).name;
}

describe("baton init", () => {
  it("creates a project in a new directory and says what to type next", async () => {
    const { code, out, err } = await runCli(["init", "deep/my-jobs"], { cwd });
    assert.deepEqual([code, out], [0, ""]);
    const project = join(cwd, "deep/my-jobs");
    assert.deepEqual(filesIn(project), FILES);
    const manifest = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
    assert.equal(manifest.name, "my-jobs");
    assert.equal(manifest.dependencies.batonjs, `^${VERSION}`);
    const created = FILES.map((file) => `created deep/my-jobs/${file}\n`).join("");
    const next = "\nnext:\n\n  cd deep/my-jobs\n  npm install\n  npm test\n  npm start\n";
    assert.equal(err, created + next);
  });

  it("creates it in the current directory, with a dot or without a word", async () => {
    for (const [name, args] of [
      ["here", ["init", "."]],
      ["here-too", ["init"]],
    ] as const) {
      const project = directory(name);
      const { code, err } = await runCli(args, { cwd: project });
      assert.equal(code, 0, err);
      assert.deepEqual(filesIn(project), FILES);
      assert.equal(nameIn(project), name);
      assert.doesNotMatch(err, /^ {2}cd /m);
    }
  });

  it("leaves other files of the directory alone", async () => {
    const project = directory("beside");
    writeFileSync(join(project, "LICENSE"), "mine");
    assert.equal((await runCli(["init", "beside"], { cwd })).code, 0);
    assert.deepEqual(filesIn(project), [...FILES, "LICENSE"].sort());
    assert.equal(readFileSync(join(project, "LICENSE"), "utf8"), "mine");
  });

  it("overwrites nothing: it names the file, and writes no other", async () => {
    const project = directory("taken");
    writeFileSync(join(project, "package.json"), "mine");
    // A link that leads nowhere would be followed by a careless write.
    symlinkSync(join(cwd, "elsewhere"), join(project, "compose.yaml"));
    const { code, err } = await runCli(["init", "taken"], { cwd });
    assert.equal(code, 1);
    assert.equal(
      err,
      "error: taken/compose.yaml, taken/package.json exist already; nothing was written\n" +
        "hint: move them away, or name a new directory: baton init my-jobs\n",
    );
    assert.deepEqual(filesIn(project), ["compose.yaml", "package.json"]);
    assert.equal(readFileSync(join(project, "package.json"), "utf8"), "mine");
    assert.equal(existsSync(join(cwd, "elsewhere")), false);
  });

  it("says that a file is where the directory should be", async () => {
    writeFileSync(join(cwd, "file"), "mine");
    const { code, err } = await runCli(["init", "file"], { cwd });
    assert.equal(code, 1);
    assert.match(err, /^error: file\/\S+ cannot be written: a file is where its directory should be\n$/);
  });

  it("refuses a name that npm would refuse, and writes nothing", async () => {
    const project = directory("My Jobs");
    const { code, err } = await runCli(["init", "."], { cwd: project });
    assert.equal(code, 2);
    assert.equal(
      err,
      'error: "My Jobs" cannot be the name of the package: npm accepts lower-case letters, digits, dashes, dots and underscores, after a letter or a digit\n' +
        "hint: give another name, such as --name my-jobs\n",
    );
    assert.deepEqual(filesIn(project), []);
    for (const [name, why] of [
      ["", /npm accepts lower-case letters/],
      [".hidden", /npm accepts lower-case letters/],
      ["a/b", /npm accepts lower-case letters/],
      ["node_modules", /npm uses that name itself/],
      ["batonjs", /the project depends on a package of that name/],
      ["typescript", /the project depends on a package of that name/],
      ["a".repeat(215), /at most 214 characters/],
    ] as const) {
      const refused = await runCli(["init", "never", "--name", name], { cwd });
      assert.equal(refused.code, 2, name);
      assert.match(refused.err, why, name);
    }
    assert.equal(existsSync(join(cwd, "never")), false);
  });

  it("takes the name from --name where the directory has another", async () => {
    const project = directory("Their Jobs");
    const { code, err } = await runCli(["init", "Their Jobs", "--name", "@shop/jobs"], { cwd });
    assert.equal(code, 0, err);
    assert.equal(nameIn(project), "@shop/jobs");
    assert.match(err, /^ {2}cd "Their Jobs"$/m);
  });
});

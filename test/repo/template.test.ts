/** The project that `baton init` creates, with the sources of this checkout in the place of the installed package. */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { runSample } from "../support/console-samples.ts";
import { blocksOf, pageAt } from "../support/markdown.ts";
import { suiteDirectory } from "../support/node-cleanup.ts";
import { BIN, script, type Ended } from "../support/process.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const directory = suiteDirectory();
const project = join(directory, "my-jobs");

interface Manifest {
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

function manifestIn(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
}

function link(name: string, target: string): void {
  const place = join(project, "node_modules", name);
  mkdirSync(dirname(place), { recursive: true });
  symlinkSync(target, place, "junction");
}

/** A script of the project as npm would run it, without npm. */
function commandOf(name: string): readonly string[] {
  const [command, ...args] = manifestIn(project).scripts[name]!.split(" ");
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const programs: Readonly<Record<string, readonly string[]>> = { node: [], tsc: [tsc], baton: [BIN] };
  assert.ok(programs[command!], `${command} is a program of the project`);
  return [...programs[command!]!, ...args];
}

function run(name: string, ...more: readonly string[]): Promise<Ended> {
  const [first, ...args] = commandOf(name);
  return script(first!, [...args, ...more], { cwd: project }).ended;
}

describe("the project of baton init", () => {
  before(async () => {
    const { code, err } = await script(BIN, ["init", "my-jobs"], { cwd: directory }).ended;
    assert.equal(code, 0, err);
    const { dependencies, devDependencies } = manifestIn(project);
    for (const name of Object.keys({ ...dependencies, ...devDependencies }))
      link(name, name === "batonjs" ? root : join(root, "node_modules", name));
  });

  it("depends on the versions that are tested here", () => {
    const here = manifestIn(root);
    const tested = { ...here.dependencies, ...here.devDependencies };
    const { dependencies, devDependencies } = manifestIn(project);
    const { batonjs, ...others } = { ...dependencies, ...devDependencies };
    assert.ok(batonjs);
    for (const [name, range] of Object.entries(others)) assert.equal(range, `^${tested[name]}`, name);
  });

  it("has types without a mistake", async () => {
    const { code, out } = await run("check", "--singleThreaded");
    assert.equal(code, 0, out);
  });

  it("has a test that passes", async () => {
    const { code, out } = await run("test");
    assert.equal(code, 0, out);
    assert.match(out, /pass 3\n/);
  });

  it("starts a node that answers as docs/getting-started.md shows", async () => {
    const [bin, ...args] = commandOf("start");
    await using node = script(bin!, [...args, "--port", "0"], { cwd: project });
    const [, url] = await node.told(/listening on (\S+)/);
    const samples = blocksOf(pageAt("docs/getting-started.md")).filter(
      ({ language }) => language === "console",
    );
    assert.equal(samples.length, 1);
    for (const sample of samples)
      await runSample(sample, { cwd: project, names: new Map(), environment: { BATON_URL: url! } });
    assert.equal((await node.terminate()).code, 0);
  });
});

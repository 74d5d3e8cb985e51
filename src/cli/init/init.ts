/**
 * `baton init`: writes a small project, a copy of the folder `template` of this package. It installs nothing, so it needs no network.
 * It overwrites no file: if one of them exists already, it writes none.
 */

import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { VERSION } from "../../platform/version.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { say, type Terminal } from "../terminal/terminal.ts";
import { checkPackageName } from "./package-name.ts";

/** The same path from the sources and from their build. */
const TEMPLATE = fileURLToPath(new URL("../../../template", import.meta.url));
const MANIFEST = "package.json";
/**
 * npm packs no file named .gitignore. With a package.json of its own the template would not find `batonjs` in a checkout, and could not
 * be checked there.
 */
const NAMES: Readonly<Record<string, string>> = {
  _gitignore: ".gitignore",
  "_package.json": MANIFEST,
};
const NEXT = ["npm install", "npm test", "npm start"];

interface ProjectFile {
  /** From the root of the project. */
  readonly path: string;
  readonly text: string;
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

export function addInitCommand(program: Command, terminal: Terminal): void {
  program
    .command("init")
    .description("create a project with a task, a schedule, a test and a compose file")
    .argument("[directory]", "where to create it; made if it does not exist", ".")
    .option("--name <name>", "name of the package (default: that of the directory)")
    .action((directory: string, { name }: { readonly name?: string }) => init(terminal, directory, name));
}

function init(terminal: Terminal, directory: string, name: string | undefined): void {
  const root = resolve(terminal.cwd, directory);
  const files = projectFiles(name ?? basename(root));
  const shown = (path: string): string => join(directory, path);
  refuseExisting(root, files, shown);
  for (const { path, text } of files) {
    writing(shown(path), () => {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      // It may have been created since we looked.
      writeFileSync(join(root, path), text, { flag: "wx" });
    });
    say(terminal, `created ${shown(path)}`);
  }
  const there = relative(terminal.cwd, root) === "" ? [] : [`cd ${quoted(directory)}`];
  say(terminal, ["", "next:", "", ...[...there, ...NEXT].map((line) => `  ${line}`)].join("\n"));
}

function projectFiles(name: string): ProjectFile[] {
  return readdirSync(TEMPLATE, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const folder = relative(TEMPLATE, entry.parentPath);
      const path = join(folder, NAMES[entry.name] ?? entry.name);
      const text = readFileSync(join(entry.parentPath, entry.name), "utf8");
      return { path, text: path === MANIFEST ? manifestText(text, name) : text };
    })
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

function manifestText(template: string, name: string): string {
  const manifest = JSON.parse(template) as Manifest;
  checkPackageName(name, Object.keys({ ...manifest.dependencies, ...manifest.devDependencies }));
  const dependencies = { ...manifest.dependencies, batonjs: `^${VERSION}` };
  return `${JSON.stringify({ ...manifest, name, dependencies }, null, 2)}\n`;
}

function refuseExisting(root: string, files: readonly ProjectFile[], shown: (path: string) => string): void {
  const existing = files
    .map(({ path }) => path)
    .filter((path) => writing(shown(path), () => lstatSync(join(root, path), { throwIfNoEntry: false })));
  if (existing.length === 0) return;
  const [verb, object] = existing.length === 1 ? ["exists", "it"] : ["exist", "them"];
  const message = `${existing.map(shown).join(", ")} ${verb} already; nothing was written`;
  const hint = `move ${object} away, or name a new directory: baton init my-jobs`;
  throw new CliFailure(EXIT.failure, message, hint);
}

const REASONS: Readonly<Record<string, string>> = {
  EEXIST: "it exists already",
  ENOTDIR: "a file is where its directory should be",
  EACCES: "you may not write there",
  EROFS: "you may not write there",
};

function writing<Answer>(path: string, step: () => Answer): Answer {
  try {
    return step();
  } catch (error) {
    const code = String((error as NodeJS.ErrnoException).code);
    throw new CliFailure(EXIT.failure, `${path} cannot be written: ${REASONS[code] ?? code}`);
  }
}

/** For a shell. */
function quoted(directory: string): string {
  return /^[\w./\\:@~-]+$/.test(directory) ? directory : JSON.stringify(directory);
}

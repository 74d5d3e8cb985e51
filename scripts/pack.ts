/**
 * `npm run pack`: makes dist/, the folder that `npm pack ./dist` and `npm publish ./dist` take, and with `--client` the
 * package `batonjs-client`, which has the client alone. A checkout needs none of it.
 *
 *   dist/package.json   the manifest for those who install it
 *   dist/bin            the launcher, as it is here
 *   dist/dist           src as JavaScript with declarations and source maps, because Node strips no types below node_modules
 *   dist/dist/commonjs  the client once more, for those who cannot `require` a module
 *   dist/dist/vendor    the parts of zod and of Standard Schema that are used, with their declarations
 *   dist/dashboard      the built pages
 *   dist/template       what `baton init` copies
 *   dist/docs, …        what people read
 *
 * docs/decisions/0028-package.md says why the client is built twice, and why zod comes along.
 */

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const CLIENT = "./src/client/create-client.ts";
const COMMONJS_CLIENT = "./dist/commonjs/client/create-client.js";
/** The same name as the JavaScript beside it, so that both are found by one condition. */
const COMMONJS_TYPES = "./dist/commonjs/client/create-client.d.ts";
/** Started by their paths, and imported by nobody. */
const STARTED = ["./src/cli/main.ts", "./src/jobs/run/thread-main.ts", "./src/agent/controller-link-main.ts"];
const SHIPPED = ["bin", "dashboard/dist", "template", "docs", "README.md", "CHANGELOG.md", "LICENSE"];
/** What is taken over as it is. Scripts and what only a checkout needs stay behind. */
const OF_BOTH = ["version", "license", "type"];
const OF_NODE = ["name", "description", "bin", "engines", "peerDependencies", "peerDependenciesMeta"];
/** Copied into the package, so that they are no dependencies of it, with the module that stands for each. */
const VENDORED: Readonly<Record<string, string>> = {
  zod: "index.js",
  "@standard-schema/spec": "dist/index.js",
};
/** Bundlers may leave out what a program does not use: nothing happens at import but in these. */
const SIDE_EFFECTS = ["./dist/cli/main.js", "./dist/*/*-main.js", "./dist/*/*/*-main.js"];

type Manifest = Readonly<Record<string, unknown>>;

export function pack(out: string): void {
  const exported = Object.values(exportedFrom(rootManifest())).filter((file) => file.endsWith(".ts"));
  build(out, exported, STARTED);
  run([join(ROOT, "scripts", "build-dashboard.mjs")], "the dashboard could not be built; see above");
  for (const name of SHIPPED) cpSync(join(ROOT, name), join(out, name), { recursive: true });
  writeManifest(out, manifestFor(rootManifest()));
}

export function packClient(out: string): void {
  build(out, [CLIENT], []);
  cpSync(join(ROOT, "LICENSE"), join(out, "LICENSE"));
  cpSync(join(ROOT, "docs", "client.md"), join(out, "README.md"));
  writeManifest(out, clientManifestFor(rootManifest()));
}

/**
 * The optional dependencies are left out: they carry a Node of 100 MB for checkouts on a machine with an older one.
 * Who installs a package has chosen a runtime, and `engines` and the launcher say which one is needed.
 */
export function manifestFor(root: Manifest): Manifest {
  return {
    ...taken(root, [...OF_BOTH, ...OF_NODE]),
    dependencies: Object.fromEntries(
      Object.entries(root["dependencies"] as Manifest).filter(([name]) => !(name in VENDORED)),
    ),
    exports: Object.fromEntries(
      Object.entries(exportedFrom(root)).map(([name, file]) => [name, conditionsOf(file)]),
    ),
    types: built(exportedFrom(root)["."]!, ".d.ts"),
    sideEffects: SIDE_EFFECTS,
    files: ["dist", ...SHIPPED],
  };
}

function clientManifestFor(root: Manifest): Manifest {
  return {
    name: "batonjs-client",
    description: "The client of Baton, a highly available job cluster, without the server",
    ...taken(root, OF_BOTH),
    engines: { node: ">=20" },
    exports: { ".": conditionsOf(CLIENT), "./package.json": "./package.json" },
    main: COMMONJS_CLIENT,
    types: COMMONJS_TYPES,
    sideEffects: false,
    files: ["dist"],
  };
}

function taken(root: Manifest, keys: readonly string[]): Manifest {
  return Object.fromEntries(keys.map((key) => [key, root[key]]));
}

function exportedFrom(root: Manifest): Readonly<Record<string, string>> {
  return root["exports"] as Readonly<Record<string, string>>;
}

function conditionsOf(file: string): unknown {
  if (!file.endsWith(".ts")) return file;
  const module = { types: built(file, ".d.ts"), default: built(file, ".js") };
  if (file !== CLIENT) return module;
  return { import: module, require: { types: COMMONJS_TYPES, default: COMMONJS_CLIENT } };
}

/** `./src/index.ts` as it is found in the package. */
function built(source: string, extension: ".js" | ".d.ts"): string {
  return source.replace(/^\.\/src\//, "./dist/").replace(/\.ts$/, extension);
}

function rootManifest(): Manifest {
  return JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Manifest;
}

function writeManifest(out: string, manifest: Manifest): void {
  writeFileSync(join(out, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

function build(out: string, exported: readonly string[], started: readonly string[]): void {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const directory = join(out, "dist");
  compile("tsconfig.pack.json", directory);
  for (const name of Object.keys(VENDORED)) vendor(directory, name);
  makeCommonJs(out);
  const modules = [...exported, ...started].map((file) => join(out, built(file, ".js")));
  keepReachable(directory, [...modules, join(out, COMMONJS_CLIENT)], ".js");
  const types = exported.map((file) => join(out, built(file, ".d.ts")));
  keepReachable(directory, [...types, join(out, COMMONJS_TYPES)], ".d.ts");
}

/** Its licence comes with it. What of it is not used is deleted with all else that no entry leads to. */
function vendor(directory: string, name: string): void {
  const vendored = join(directory, "vendor");
  const copy = join(vendored, name);
  cpSync(join(ROOT, "node_modules", name), copy, {
    recursive: true,
    filter: (source) =>
      /(?:^[^.]*|\.js|\.d\.ts|LICENSE)$/.test(basename(source)) && basename(source) !== "src",
  });
  const specifier = new RegExp(`((?:from|import)[\\s(]*")${name}(/[^"]+)?"`, "g");
  for (const file of filesIn(directory)) {
    if (!/\.(?:js|d\.ts)$/.test(file) || file.startsWith(vendored)) continue;
    const path = relative(dirname(file), copy);
    const from = path.startsWith(".") ? path : `./${path}`;
    rewrite(file, specifier, (_, before: string, part?: string) =>
      part === undefined ? `${before}${from}/${VENDORED[name]}"` : `${before}${from}${part}/index.js"`,
    );
  }
}

function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function rewrite(
  file: string,
  pattern: RegExp,
  change: (match: string, ...groups: string[]) => string,
): void {
  writeFileSync(file, readFileSync(file, "utf8").replaceAll(pattern, change));
}

/** Its types are those of the module: two sets of classes with private fields would be two types to a compiler. */
function makeCommonJs(out: string): void {
  const directory = join(out, "dist", "commonjs");
  compile("tsconfig.pack-commonjs.json", directory);
  writeFileSync(join(directory, "package.json"), '{ "type": "commonjs" }\n');
  const from = '"../../client/create-client.js" with { "resolution-mode": "import" }';
  const functions = ["createClient", "hasCode"].map(
    (name) => `export declare const ${name}: typeof Client.${name};\n`,
  );
  const classes = ["BatonError", "JobFailed"].map(
    (name) => `export declare const ${name}: typeof Client.${name};\nexport type ${name} = Client.${name};\n`,
  );
  writeFileSync(
    join(out, COMMONJS_TYPES),
    `import type * as Client from ${from};\nexport type * from ${from};\n${[...functions, ...classes].join("")}`,
  );
}

/** Deletes what no entry leads to: declarations of internals, and parts of the server that a client has only types of. */
function keepReachable(directory: string, entries: readonly string[], extension: ".js" | ".d.ts"): void {
  const kept = new Set<string>();
  const visit = (file: string): void => {
    if (kept.has(file)) return;
    kept.add(file);
    const text = readFileSync(file, "utf8");
    for (const [, specifier] of text.matchAll(/(?:from|import|require)[\s(]*"(\.{1,2}\/[^"]+)\.js"/g))
      visit(join(dirname(file), `${specifier}${extension}`));
  };
  for (const entry of entries) visit(entry);
  for (const file of filesIn(directory)) {
    if (!file.endsWith(extension) || kept.has(file)) continue;
    rmSync(file);
    rmSync(`${file}.map`, { force: true });
    for (let folder = dirname(file); readdirSync(folder).length === 0; folder = dirname(folder))
      rmdirSync(folder);
  }
}

function compile(project: string, outDir: string): void {
  const manifest = createRequire(import.meta.url).resolve("typescript/package.json");
  const tsc = join(dirname(manifest), "bin", "tsc");
  // More threads check the same types again, which takes more than twice the processor time.
  const args = [tsc, "--singleThreaded", "--project", join(ROOT, "scripts", project), "--outDir", outDir];
  run(args, "src could not be compiled; see above");
  // The compiler rewrites the extensions in JavaScript alone.
  for (const file of filesIn(outDir))
    if (file.endsWith(".d.ts"))
      rewrite(file, /((?:from|import)[\s(]*"\.{1,2}\/[^"]+)\.ts"/g, (_, start) => `${start}.js"`);
}

function run(args: readonly string[], complaint: string): void {
  const { status } = spawnSync(process.execPath, [...args], { stdio: "inherit", cwd: ROOT });
  if (status !== 0) throw new Error(complaint);
}

if (import.meta.main) {
  const out = join(ROOT, "dist");
  const isClient = process.argv.includes("--client");
  (isClient ? packClient : pack)(out);
  const name = isClient ? "batonjs-client" : "batonjs";
  process.stdout.write(`${relative(ROOT, out)}/ is ${name}; look at it with: npm pack ./dist --dry-run\n`);
}

/**
 * `npm run pack`: makes dist/, the folder that `npm pack ./dist` and `npm publish ./dist` take.
 *
 *   dist/package.json   the manifest for those who install it
 *   dist/bin            the launcher, as it is here
 *   dist/dist           src as JavaScript with declarations, because Node strips no types below node_modules
 *   dist/dashboard      the built page
 *   dist/docs, …        what people read
 *
 * A checkout needs none of it.
 */

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const SHIPPED = ["bin", "dashboard/dist", "docs", "README.md", "CHANGELOG.md", "LICENSE"];
/** What is taken over as it is. Scripts and what only a checkout needs stay behind. */
const TAKEN_OVER = [
  "name",
  "version",
  "description",
  "license",
  "type",
  "bin",
  "engines",
  "dependencies",
] as const;

type Manifest = Readonly<Record<string, unknown>>;

export function pack(out: string): void {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  compile(join(out, "dist"));
  run([join(ROOT, "scripts", "build-dashboard.mjs")], "the dashboard could not be built; see above");
  for (const name of SHIPPED) cpSync(join(ROOT, name), join(out, name), { recursive: true });
  const manifest = manifestFor(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Manifest);
  writeFileSync(join(out, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

/**
 * The optional dependencies are left out: they carry a Node of 100 MB for checkouts on a machine with an older one.
 * Who installs a package has chosen a runtime, and `engines` and the launcher say which one is needed.
 */
export function manifestFor(root: Manifest): Manifest {
  const exported = root["exports"] as Readonly<Record<string, string>>;
  return {
    ...Object.fromEntries(TAKEN_OVER.map((key) => [key, root[key]])),
    exports: Object.fromEntries(
      Object.entries(exported).map(([name, file]) => [name, file.endsWith(".ts") ? built(file) : file]),
    ),
    files: ["dist", ...SHIPPED],
  };
}

/** `./src/index.ts` as it is found in the package. */
function built(source: string): { types: string; default: string } {
  const base = source.replace(/^\.\/src\//, "./dist/").replace(/\.ts$/, "");
  return { types: `${base}.d.ts`, default: `${base}.js` };
}

function compile(outDir: string): void {
  const manifest = createRequire(import.meta.url).resolve("typescript/package.json");
  const tsc = join(dirname(manifest), "bin", "tsc");
  const project = join(ROOT, "scripts", "tsconfig.pack.json");
  // More threads check the same types again, which takes more than twice the processor time.
  const args = [tsc, "--singleThreaded", "--project", project, "--outDir", outDir];
  run(args, "src could not be compiled; see above");
}

function run(args: readonly string[], complaint: string): void {
  const { status } = spawnSync(process.execPath, [...args], { stdio: "inherit", cwd: ROOT });
  if (status !== 0) throw new Error(complaint);
}

if (import.meta.main) {
  const out = join(ROOT, "dist");
  pack(out);
  process.stdout.write("dist/ is made; look at it with: npm pack ./dist --dry-run\n");
}

/**
 * Builds the dashboard into dashboard/dist, and a compressed copy beside each file, so that no node compresses anything.
 * Plain JavaScript: `npm ci` runs it on whatever Node there is.
 *
 * `--if-possible` is for `npm ci` without development dependencies: there is nothing to build with, and nothing fails.
 */

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const DASHBOARD = join(dirname(dirname(fileURLToPath(import.meta.url))), "dashboard");
const DIST = join(DASHBOARD, "dist");
const COMPRESSED = new Set([".html", ".js", ".css", ".svg"]);
/** Below that a compressed copy saves no packet. */
const BYTES_MIN = 1_024;

export async function buildDashboard({ ifPossible = false } = {}) {
  let vite;
  try {
    vite = await import("vite");
  } catch (error) {
    if (!ifPossible || error.code !== "ERR_MODULE_NOT_FOUND") throw error;
    const there = existsSync(join(DIST, "index.html"));
    if (!there) process.stderr.write("the dashboard is not built: vite is not installed\n");
    return;
  }
  await vite.build({ configFile: join(DASHBOARD, "vite.config.ts"), logLevel: "warn" });
  for (const name of readdirSync(DIST, { recursive: true, encoding: "utf8" })) {
    if (COMPRESSED.has(extname(name))) compress(join(DIST, name));
  }
}

function compress(path) {
  const content = readFileSync(path);
  if (content.length < BYTES_MIN) return;
  writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  writeFileSync(`${path}.br`, brotliCompressSync(content, { params }));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await buildDashboard({ ifPossible: process.argv.includes("--if-possible") });
}

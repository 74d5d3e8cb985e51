/** Imports a module that holds a task, of whatever kind: ECMAScript or CommonJS, JavaScript or TypeScript. On the main thread and on worker threads. */

import { readFileSync } from "node:fs";
import { findPackageJSON, registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import type { Handler, Task } from "./task.ts";

export type TaskExports = Readonly<Record<string, unknown>>;

/** The exports of a module, with `default` where there is one. */
export async function importTaskModule(url: string): Promise<TaskExports> {
  if (url.endsWith(".ts") && isCommonJsPackage(url)) acceptModuleSyntax();
  const loaded = (await import(url)) as TaskExports;
  const exported = loaded["default"];
  // What a compiler makes of `export default` for CommonJS stands one level deeper.
  if (typeof exported === "object" && exported !== null && "__esModule" in exported) return exported;
  return loaded;
}

/** The handler of a module that was checked before: its default export is a task or a function. */
export async function importHandler(url: string): Promise<Handler> {
  const exported = (await importTaskModule(url))["default"] as Task | Handler;
  return typeof exported === "function" ? exported : (payload, context) => exported.run(payload, context);
}

/** What the nearest package.json says of `.js` and `.ts` files, as `npm init` writes it. */
export function isCommonJsPackage(url: string): boolean {
  const manifest = findPackageJSON(url);
  if (manifest === undefined) return false;
  try {
    return (JSON.parse(readFileSync(manifest, "utf8")) as { type?: unknown }).type === "commonjs";
  } catch {
    return false; // Node says what is wrong with it.
  }
}

/**
 * A statement of a module at the beginning of a line, and not of types alone. Node takes every `.ts` file of such a package for
 * CommonJS, but TypeScript is written with `import` and `export` there too, and compilers take care of it.
 */
const MODULE_SYNTAX =
  /^(?:export\s+(?:default|const|let|var|async|function|class|abstract)\b|export\s*[{*]|import\s+(?!type\b)[^(=;]*\bfrom\s*["']|import\s*["'])/m;

let accepting = false;

/** For the life of the process: handlers import more modules while they run. Only files that would otherwise fail are concerned. */
function acceptModuleSyntax(): void {
  if (accepting) return;
  accepting = true;
  registerHooks({
    load(url, context, next) {
      const isModule =
        context.format === "commonjs-typescript" &&
        url.startsWith("file:") &&
        MODULE_SYNTAX.test(readFileSync(fileURLToPath(url), "utf8"));
      return next(url, isModule ? { ...context, format: "module-typescript" } : context);
    },
  });
}

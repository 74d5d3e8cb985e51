/** Loads a package when it is first used: all of them would take most of the start, and some are optional drivers of servers. */

import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { BatonError } from "../core/errors.ts";

const SELF = fileURLToPath(import.meta.url);
const require = createRequire(SELF);

/** Optional peer dependencies: what each is for, and the range that package.json declares. */
export const OPTIONAL_PACKAGES: Readonly<Record<string, { readonly use: string; readonly range: string }>> = {
  pg: { use: "a store on PostgreSQL", range: "^8.16.0" },
  "@redis/client": { use: "Redis", range: "^6.0.0" },
  undici: { use: "etcd", range: "^8.0.0" },
  "@opentelemetry/api": { use: "a trace", range: "^1.9.0" },
};

/** For synchronous code; where one can wait, `import()` does the same. The caller names the type of the package. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function loadPackage<Package>(name: string): Package {
  try {
    return require(name) as Package;
  } catch (error) {
    throw missingPackage(name, error) ?? error;
  }
}

/** What to type, if the error says that an optional package is not installed; else null. */
export function missingPackage(name: string, error: unknown): BatonError | null {
  const { code, requireStack } = error as {
    readonly code?: string;
    readonly requireStack?: readonly string[];
  };
  const optional = OPTIONAL_PACKAGES[name];
  // One that is there and lacks a dependency of its own is another fault.
  if (!optional || code !== "MODULE_NOT_FOUND" || requireStack?.[0] !== SELF) return null;
  const wanted = `${name}@${optional.range}`;
  return new BatonError(
    "BAD_CONFIG",
    `${optional.use} needs the package ${name}, which is not installed; type: npm install "${wanted}"`,
    { field: name },
    { cause: error },
  );
}

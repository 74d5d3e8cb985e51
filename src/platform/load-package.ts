import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/**
 * Loads a package when it is first used, because to load all of them would take most of the start. For synchronous code; where one
 * can wait, `import()` does the same. The caller names the type of the package.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function loadPackage<Package>(name: string): Package {
  return require(name) as Package;
}

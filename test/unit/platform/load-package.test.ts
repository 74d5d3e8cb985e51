import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { BatonError } from "../../../src/core/errors.ts";
import { loadPackage, missingPackage, OPTIONAL_PACKAGES } from "../../../src/platform/load-package.ts";

const manifest = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional: boolean }>>;
};

const LOADER = fileURLToPath(new URL("../../../src/platform/load-package.ts", import.meta.url));

/** As Node says it of a package that is required from there. */
function notFoundFrom(path: string): unknown {
  try {
    createRequire(path)("nosuch-package-of-baton");
  } catch (error) {
    return error;
  }
  throw new Error("there is such a package");
}

describe("an optional package", () => {
  it("that is not installed: one line says what it is for and what to type", () => {
    const error = missingPackage("pg", notFoundFrom(LOADER));
    assert.ok(error instanceof BatonError);
    assert.equal(error.code, "BAD_CONFIG");
    assert.equal(
      error.message,
      'a store on PostgreSQL needs the package pg, which is not installed; type: npm install "pg@^8.16.0"',
    );
  });

  it("that lacks a package of its own, and one that is not optional, fail as they do", () => {
    assert.equal(missingPackage("pg", notFoundFrom("/x/node_modules/pg/index.js")), null);
    assert.equal(missingPackage("nosuch", notFoundFrom(LOADER)), null);
    assert.throws(() => loadPackage("nosuch-package-of-baton"), { code: "MODULE_NOT_FOUND" });
  });

  it("is declared with the range that the message names, and is no dependency", () => {
    const ranges = Object.fromEntries(
      Object.entries(OPTIONAL_PACKAGES).map(([name, { range }]) => [name, range]),
    );
    assert.deepEqual(manifest.peerDependencies, ranges);
    for (const name of Object.keys(ranges)) {
      assert.equal(manifest.dependencies[name], undefined);
      assert.equal(manifest.peerDependenciesMeta[name]?.optional, true);
    }
  });
});

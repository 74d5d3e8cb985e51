import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { environmentName, type Setting, SETTINGS } from "../../../src/config/settings.ts";
import { readValue, writeValue } from "../../../src/config/setting-value.ts";
import { configurationPage } from "../../../scripts/settings-docs.ts";

describe("the table of settings", () => {
  it("has no path, variable or flag twice", () => {
    const rows: readonly Setting[] = SETTINGS;
    const paths = rows.map((row) => row.path);
    assert.equal(new Set(paths).size, paths.length);
    assert.equal(new Set(paths.map(environmentName)).size, paths.length);
    const flags = rows.flatMap((row) => row.flag ?? []);
    assert.equal(new Set(flags).size, flags.length);
  });

  it("has defaults that pass their own checks", () => {
    for (const row of SETTINGS) {
      if (row.default !== null) assert.doesNotThrow(() => readValue(row, row.default, false, "/"), row.path);
      else assert.ok(row.defaultIs, row.path);
    }
  });

  it("writes values so that they are read back the same", () => {
    for (const row of SETTINGS) {
      if (row.default === null) continue;
      const value = readValue(row, row.default, false, "/");
      assert.deepEqual(readValue(row, writeValue(row, value), false, "/"), value, row.path);
    }
  });

  it("reads booleans from text and from a file", () => {
    const row: Setting = { path: "x.y", kind: "boolean", default: false, about: "" };
    assert.equal(readValue(row, "true", true, "/"), true);
    assert.equal(readValue(row, false, false, "/"), false);
    assert.throws(() => readValue(row, "yes", true, "/"), { message: 'must be true or false, not "yes"' });
  });
});

describe("docs/configuration.md", () => {
  it("is what the table makes of it (npm run docs:settings)", () => {
    const page = readFileSync(new URL("../../../docs/configuration.md", import.meta.url), "utf8");
    assert.equal(page, configurationPage());
  });
});

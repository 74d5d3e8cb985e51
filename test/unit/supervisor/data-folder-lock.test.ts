import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { lockDataFolder, readReport } from "../../../src/supervisor/supervisor-report.ts";

describe("lockDataFolder", () => {
  it("is had by one at a time, and is free again after its release", (t) => {
    const directory = mkdtempSync(join(tmpdir(), "baton-lock-"));
    t.after(() => rmSync(directory, { recursive: true, force: true }));
    const first = lockDataFolder(directory);
    assert.ok(first);
    assert.equal(lockDataFolder(directory), null);
    first();
    first();
    const second = lockDataFolder(directory);
    assert.ok(second);
    second();
  });

  it("says what is wrong with a directory that cannot be used", (t) => {
    const directory = mkdtempSync(join(tmpdir(), "baton-lock-"));
    t.after(() => rmSync(directory, { recursive: true, force: true }));
    writeFileSync(join(directory, "file"), "");
    assert.throws(() => lockDataFolder(join(directory, "file")), { code: "DATA_UNUSABLE" });
    assert.equal(readReport(directory), null);
  });
});

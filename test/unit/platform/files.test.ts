/** The small files of a node, on a real disk. */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { systemFiles } from "../../../src/platform/files.ts";

async function inDirectory(body: (dir: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "baton-files-"));
  try {
    await body(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

describe("a small file", () => {
  test("is there after a write, whole, for its owner only, also in a directory that was not there", () =>
    inDirectory(async (dir) => {
      const file = join(dir, "deeper", "votes.json");
      assert.equal(await systemFiles.read(file), null);
      await systemFiles.replace(file, "one");
      await systemFiles.replace(file, "two");
      assert.equal(await systemFiles.read(file), "two");
      const { mode } = statSync(file);
      if (process.platform !== "win32") assert.equal(mode & 0o777, 0o600);
    }));

  test("a draft that a crash left, or a link that was planted in its place, is not written through", () =>
    inDirectory(async (dir) => {
      const file = join(dir, "votes.json");
      const elsewhere = join(dir, "elsewhere");
      writeFileSync(elsewhere, "untouched");
      symlinkSync(elsewhere, `${file}.new`);
      await systemFiles.replace(file, "mine");
      assert.equal(readFileSync(elsewhere, "utf8"), "untouched");
      assert.equal(await systemFiles.read(file), "mine");
    }));
});

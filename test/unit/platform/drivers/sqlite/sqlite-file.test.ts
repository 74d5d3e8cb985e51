import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { hasCode } from "../../../../../src/core/errors.ts";
import { systemClock } from "../../../../../src/platform/clock.ts";
import { SqliteFile } from "../../../../../src/platform/drivers/sqlite/sqlite-file.ts";

describe("a SQLite file", () => {
  let dir: string;
  let file: SqliteFile;

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "baton-sqlite-"));
    file = new SqliteFile(join(dir, "data", "test.db"), systemClock);
    file.exec("CREATE TABLE t (n INTEGER NOT NULL)");
  });

  afterEach(() => {
    file.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const insert = (n: number | null) => () => {
    file.prepare("INSERT INTO t VALUES (?)").run(n);
    return n;
  };
  const rows = (): unknown[] =>
    file.read(() =>
      file
        .prepare("SELECT n FROM t ORDER BY n")
        .all()
        .map((row) => row["n"]),
    );
  const pragma = (name: string): unknown => Object.values(file.prepare(`PRAGMA ${name}`).get()!)[0];

  it("syncs its log at every commit, so that a resolved write survives power loss", () => {
    assert.equal(pragma("journal_mode"), "wal");
    assert.equal(pragma("synchronous"), 2);
  });

  it("is readable for nobody else", () => {
    assert.equal(statSync(join(dir, "data")).mode & 0o777, 0o700);
  });

  it("commits what arrives in one turn together", async () => {
    let commits = 0;
    file.setHooks({ beforeCommit: () => void commits++ });
    await Promise.all([1, 2, 3].map((n) => file.write(insert(n))));
    assert.equal(commits, 1);
    await file.write(insert(4));
    assert.equal(commits, 2);
    assert.deepEqual(rows(), [1, 2, 3, 4]);
  });

  it("does not let one that fails half-way spoil the others of its group", async () => {
    let rolledBack = 0;
    file.setHooks({ afterRollback: () => void rolledBack++ });
    const [first, second, third] = await Promise.allSettled([
      file.write(insert(1)),
      file.write(() => {
        insert(2)();
        insert(null)();
      }),
      file.write(insert(3)),
    ]);
    assert.equal(first.status, "fulfilled");
    assert.ok(second.status === "rejected" && hasCode(second.reason, "STORE_UNAVAILABLE"));
    assert.equal(third.status, "fulfilled");
    assert.equal(rolledBack, 2);
    assert.deepEqual(rows(), [1, 3]);
  });

  it("follows no link and opens its file to nobody else", () => {
    assert.equal(statSync(file.path).mode & 0o777, 0o600);
    const link = join(dir, "link.db");
    symlinkSync(file.path, link);
    assert.throws(() => new SqliteFile(link, systemClock));
  });

  it("belongs to one process at a time, and names the remedy to the second", () => {
    const refused = { code: "DATA_IN_USE", message: /--data/ };
    assert.throws(() => new SqliteFile(file.path, systemClock), refused);
  });

  it("commits what waits when it is closed, and refuses afterwards", async () => {
    const written = file.write(insert(7));
    file.close();
    assert.equal(await written, 7);
    await assert.rejects(file.write(insert(8)), (error) => hasCode(error, "STOPPED"));
    file = new SqliteFile(file.path, systemClock);
    assert.deepEqual(rows(), [7]);
  });

  it("leaves no log behind after a clean close", () => {
    file.close();
    assert.ok(!existsSync(`${file.path}-wal`));
  });
});

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Baton, createNode, defineTask } from "../../../src/index.ts";
import { recordingLog } from "../../support/node-log.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { script } from "../../support/process.ts";
import { atEnd, type Scope } from "../../support/node-cleanup.ts";

const greet = defineTask({ name: "greet", run: (name: string) => `Hello, ${name}!` });
const INDEX = new URL("../../../src/index.ts", import.meta.url).pathname;

function temporary(t: Scope): string {
  const directory = mkdtempSync(join(tmpdir(), "baton-test-"));
  atEnd(t, () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

describe("the first start of an embedded node", () => {
  let server: Awaited<ReturnType<typeof PostgresServer.shared>>;
  before(async () => {
    server = await PostgresServer.shared();
  });
  after(() => server?.stop());

  it("on an empty PostgreSQL logs nothing to worry about, also of three nodes of one process at once", async (t) => {
    const url = await server.createDatabase();
    const log = recordingLog();
    const open = (): Promise<Baton> => createNode({ store: url, tasks: [greet], log });
    const nodes = await Promise.all([open(), open(), open()]);
    atEnd(t, () => Promise.all(nodes.map((node) => node.stop({ hurry: true }))));
    await Promise.all(nodes.map((node) => node.start()));
    for (const node of nodes) assert.equal(await (await node.submit(greet, "Ada")).result(), "Hello, Ada!");
    await Promise.all(nodes.map((node) => node.stop()));
    const bad = log.lines.filter(({ level }) => level === "warn" || level === "error");
    assert.deepEqual(bad, []);
  });

  for (const [store, left] of [
    ["memory", []],
    ["sqlite:jobs.db", ["jobs.db"]],
    ["", [".baton"]],
  ] as const) {
    it(`creates ${left.length === 0 ? "nothing" : left.join()} with ${store === "" ? "no store named" : `the store ${store}`}`, async (t) => {
      const directory = temporary(t);
      const code = `
        const { createNode } = await import(${JSON.stringify(INDEX)});
        const baton = await createNode({ ${store === "" ? "" : `store: "${store}"`} });
        await baton.start();
        await baton.stop();`;
      await using program = script("--input-type=module", ["--eval", code], { cwd: directory });
      const { code: ended, err } = await program.ended;
      assert.equal(ended, 0, err);
      assert.deepEqual(readdirSync(directory), left);
      assert.ok(!existsSync(join(directory, ".baton", "admin-token")));
    });
  }
});

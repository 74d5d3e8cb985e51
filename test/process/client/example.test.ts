/** examples/client against two real nodes on one database. The one that it talks to is killed while it reads. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { QUICK, TestCluster } from "../../support/cluster.ts";
import { eventually } from "../../support/wait.ts";
import { script } from "../../support/process.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const PATTERNS = fileURLToPath(new URL("../../../examples/patterns/tasks", import.meta.url));

describe("examples/client", () => {
  it("prints the whole log and the result, though the node that it talks to is killed", async (t) => {
    const cluster = await TestCluster.open(t, { settings: QUICK });
    const own = (args: readonly string[]) =>
      [process.execPath, [`${root}/bin/baton.mjs`, ...args, "--tasks", PATTERNS]] as const;
    await Promise.all(["ada", "bob"].map((name) => cluster.start(name, {}, own)));
    await cluster.leader();
    const urls = [...cluster.nodes.values()].map(({ url }) => url);
    const environment = { BATON_URL: urls.join(",") };
    await using program = script(`${root}/examples/client/index.ts`, [], { cwd: root, environment });
    const [, id, url] = await program.told(/^(\S+) was submitted at (\S+)$/m);
    const [name, inUse] = [...cluster.nodes].find(([, node]) => node.url === url)!;
    const other = [...cluster.nodes.values()].find((node) => node !== inUse)!;
    await eventually("some lines", async () => {
      const { logs } = await other.client.logs(id!);
      return logs.length > 5;
    });
    await cluster.kill(name);
    const { code, out, err } = await program.ended;
    assert.equal(code, 0, err);
    const lines = out.trimEnd().split("\n");
    assert.equal(lines.pop(), "completed 30");
    const { logs } = await other.client.logs(id!, { limit: 1_000 });
    assert.deepEqual(
      lines,
      logs.map(({ seq, message }) => `${seq} ${message}`),
      "each line once, also those of a second attempt where the first one died with its node",
    );
    assert.equal(logs.at(-1)!.message, "30");
  });
});

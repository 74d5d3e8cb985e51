import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { clusterBody, fakeNode, nodeBody } from "../fake-node.ts";
import { runCli } from "../run-cli.ts";
import { overview } from "../top/sample.ts";

describe("what the list of nodes has no column for", () => {
  const reach = (node: string, ok: boolean) => ({ node, ok, latency_ms: 1, reason: ok ? null : "no route" });
  const child = {
    state: "running",
    pid: 12,
    started_at: "2026-01-01T00:00:00.000Z",
    restarts: 3,
    crashes_in_a_row: 0,
    last_exit: {
      at: "2026-01-01T00:00:00.000Z",
      code: null,
      signal: "SIGKILL",
      reason: "wedged: /livez does not answer",
    },
  };
  const nodes = [
    nodeBody({ reach: [reach("node-2", false), reach("node-3", true), reach("node-4", false)] }),
    nodeBody({
      name: "node-2",
      reach: [reach("node-1", true)],
      supervised: { controller: child, agent: { none: "it leads" } },
    }),
    nodeBody({ name: "node-3", reach: [reach("node-2", false)], supervised: { unknown: true } }),
    nodeBody({ name: "node-4", status: "dead", alive: false }),
  ];

  for (const command of [["nodes"], ["cluster", "status"]]) {
    it(`is told by baton ${command.join(" ")}`, async () => {
      await using node = await fakeNode({
        "GET /cluster/overview": overview(),
        "GET /cluster": clusterBody({ scheduler_leader: null }),
        "GET /cluster/leaders": { leaders: [] },
        "GET /cluster/nodes": { nodes },
      });
      const { code, out } = await runCli([...command, "--url", node.url]);
      assert.equal(code, 0);
      assert.match(out, /\n\nDo not reach\n {2}node-1, node-3 → node-2 \(no route\)\n {2}See `baton doctor`/);
      assert.doesNotMatch(out, /→ node-4/, "that a dead one is not reached is no news");
      assert.match(
        out,
        /\n\nProcesses\nNODE +CHILD +STATE .*\nnode-2 +controller +running +12 .*SIGKILL, wedged/,
      );
    });
  }

  it("is told of one node", async () => {
    await using node = await fakeNode({ "GET /cluster/nodes/node-2": nodes[1]! });
    const { out } = await runCli(["node", "show", "node-2", "--url", node.url]);
    assert.match(out, /\n\nCHILD .*\ncontroller +running/);
  });
});

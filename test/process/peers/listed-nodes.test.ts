/** Three nodes started from a foreign cluster_config.json: whoever is asked, it is one service. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { before, describe, it } from "node:test";
import { FOREIGN_FILE_VARIABLE } from "../../../src/config/sources/dialects/dialects.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { birthplace, PeerCluster, type WriteNodeFile } from "../../support/peer-cluster.ts";
import { eventually } from "../../support/wait.ts";
import { columns } from "../../support/columns.ts";

/** The example of its document (docs/compatibility.md), but for the addresses and the file, which three nodes of one machine do not share. */
const EXAMPLE = `{
  "self_name": "node-a",
  "nodes": {
    "node-a": "http://node-a.internal:8080",
    "node-b": "http://node-b.internal:8080",
    "node-c": "http://node-c.internal:8080"
  },
  "health_check_interval_seconds": 5,
  "internal_request_timeout_seconds": 5,
  "enable_round_robin": true,
  "rr_state_file": "/tmp/rr_state.json",
  "rr_strategy": "global"
}
`;

const exampleFile: WriteNodeFile = ({ name, names, url }) => {
  let text = EXAMPLE.replace('"self_name": "node-a"', `"self_name": "${name}"`);
  for (const each of names) text = text.replace(`http://${each}.internal:8080`, url(each));
  return { file: "cluster_config.json", text: text.replace("/tmp/rr_state.json", "rr_state.json") };
};

const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const ABC = ["node-a", "node-b", "node-c"];

describe("a cluster from a foreign cluster_config.json", { timeout: 120_000 }, () => {
  const suite = suiteScope();
  let cluster: PeerCluster;

  before(async () => {
    cluster = await PeerCluster.open(suite, { file: exampleFile });
    // The three ways in which a node is told of its file.
    const files = new Map<string, string>();
    for (const name of ABC) files.set(name, await cluster.writeFile(name));
    await Promise.all([
      cluster.start("node-a", { args: ["--config", files.get("node-a")!] }),
      cluster.start("node-b", {
        args: [],
        environment: { [FOREIGN_FILE_VARIABLE]: files.get("node-b")! },
      }),
      cluster.start("node-c", { args: [], cwd: dirname(files.get("node-c")!) }),
    ]);
    await cluster.gathered();
  });

  const any = () => ABC.map((name) => cluster.node(name));
  it("listens where its own URL says, and tells who it is", async () => {
    for (const name of ABC) {
      assert.equal(cluster.node(name).url, cluster.url(name));
      const { status, body } = await cluster.node(name).call("/health");
      assert.deepEqual([status, body], [200, { status: "ok", node: name }]);
    }
  });

  it("shows all nodes up, with when each was last seen, whoever is asked", async () => {
    for (const node of any()) {
      const { nodes } = await node.client.cluster.nodes();
      assert.deepEqual(
        columns(nodes, "name", "status", "alive", "url"),
        ABC.map((name) => [name, "active", true, cluster.url(name)]),
      );
      for (const { last_seen } of nodes) {
        const ageMs = systemClock.now() - Date.parse(last_seen!);
        assert.ok(ageMs >= -1_000 && ageMs < 60_000, `seen ${ageMs} ms ago, with checks every 5 s`);
      }
    }
  });

  it("gives new jobs to the nodes in the order of their names, whichever node is asked", async () => {
    const owners: string[] = [];
    for (let i = 0; i < 18; i++) {
      // Everybody once in turn, then always the same one.
      const { job_id } = await cluster
        .node(i < 9 ? ABC[(2 * i) % 3]! : "node-b")
        .client.submit({ task: "tick" });
      assert.match(job_id, new RegExp(`^node-[abc]-${UUID}$`));
      owners.push(birthplace(job_id));
      // It lies in the store of the node that its id names, and nowhere else.
      for (const name of ABC) {
        const { jobs } = await cluster.node(name).client.jobs({ limit: 5 });
        assert.equal(
          jobs.some((job) => job.job_id === job_id),
          name === birthplace(job_id),
          name,
        );
      }
    }
    const first = ABC.indexOf(owners[0]!);
    assert.deepEqual(
      owners,
      owners.map((_, turn) => ABC[(first + turn) % 3]),
    );
  });

  it("writes the position of its round into rr_state_file, beside the file that names it", async () => {
    await cluster.node("node-a").client.submit({ task: "tick" });
    const { name } = await cluster.leader();
    const file = join(cluster.directory, `${name}.files`, "rr_state.json");
    await eventually("the position", async () => {
      const text = await readFile(file, "utf8").catch(() => null);
      return text !== null && Number.isSafeInteger((JSON.parse(text) as { index: number }).index)
        ? text
        : null;
    });
  });
});

/** Node-controllers whose nodes ask callers who they are: their agents work without anybody having made a token for them. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { it } from "node:test";
import { BatonClient } from "../../../../src/client/baton-client.ts";
import { atEnd } from "../../../support/node-cleanup.ts";
import { PostgresServer } from "../../../support/postgres-server.ts";
import { eventually } from "../../../support/wait.ts";
import { workingPair } from "../../../process/controller/pair-world.ts";
import { agentOf } from "../../../process/controller/world.ts";
import { column } from "../../../support/columns.ts";

const ADMIN = "an-admin-token-that-only-nodes-have-0123";
const HOUR_MS = 3_600_000;
const NO_PROC = existsSync("/proc/self/environ") ? false : "there is no /proc here";

it(
  "an agent has a token of its own, that may do no more than it needs and ends with its node-controller",
  { skip: NO_PROC },
  async (t) => {
    const server = await PostgresServer.shared();
    atEnd(t, () => server.stop());
    const settings = { HTTP__HOST: "0.0.0.0", ACCESS__TOKEN: ADMIN };
    const { leader, standby } = await workingPair(t, server, { settings });
    await using client = new BatonClient({ url: leader.report()!.url!, token: ADMIN, timeoutMs: 10_000 });

    const { job_id: id } = await client.submit({ task: "work", payload: { ms: 0 } });
    const done = await eventually("the job to be done", async () => {
      const job = await client.job(id);
      return job.status === "completed" ? job : null;
    });
    assert.equal(done.worker, `${standby.name}-worker`, "by the agent, at the leader of another machine");

    const { tokens } = await client.access.tokens();
    const told = tokens.map(({ name, permission, created_by }) => `${name} ${permission} ${created_by}`);
    const names = [leader, standby].map(({ name }) => name).sort();
    assert.deepEqual(
      told.sort(),
      names.map((name) => `${name}-worker operate node-controller:${name}`),
    );
    for (const { expires_at } of tokens) {
      const left = Date.parse(expires_at!) - Date.now();
      assert.ok(left > HOUR_MS / 2 && left <= HOUR_MS, `${left} ms`);
    }

    const { pid } = agentOf(standby.report()!);
    const shown = readFileSync(`/proc/${pid}/environ`, "utf8");
    const token = /^BATON_TOKEN=(.+)$/m.exec(shown.replaceAll("\0", "\n"))![1]!;
    assert.ok(!shown.includes(ADMIN), "it has nothing with which it could do more");
    assert.ok(!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(token), "nor can anybody see it in ps");
    const ask = async (path: string): Promise<number> =>
      (await fetch(`${leader.report()!.url}${path}`, { headers: { authorization: `Bearer ${token}` } }))
        .status;
    assert.deepEqual([await ask("/status"), await ask("/tokens")], [200, 403]);

    // Another life of the controller takes the same token over: its agent has no other one.
    const before = standby.report()!.controller.pid!;
    process.kill(before, "SIGKILL");
    await standby.when(
      "to have its controller back",
      ({ controller, role }) => controller.pid !== before && controller.state === "running" && role !== null,
    );
    assert.equal(await ask("/status"), 200);
    const { job_id: next } = await client.submit({ task: "work", payload: { ms: 0 } });
    await eventually("the next job to be done", async () => (await client.job(next)).status === "completed");

    standby.child.kill("SIGTERM");
    assert.deepEqual(await standby.exited, { code: 0, signal: null });
    await eventually("its token to be refused", async () => (await ask("/status")) === 401);
    assert.deepEqual(column((await client.access.tokens()).tokens, "name"), [`${leader.name}-worker`]);
  },
);

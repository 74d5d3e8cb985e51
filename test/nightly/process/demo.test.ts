import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { freePort } from "../../support/free-port.ts";
import { baton } from "../../unit/cli/process.ts";
import type { TestProcess } from "../../support/process.ts";

const cwd = fileURLToPath(new URL("../../..", import.meta.url));

const answers = async (url: string): Promise<boolean> =>
  fetch(`${url}/livez`, { signal: AbortSignal.timeout(1_000) }).then(
    (response) => response.ok,
    () => false,
  );

/** Until all three do, or none. */
async function until(urls: readonly string[], wanted: boolean): Promise<void> {
  for (const url of urls) while ((await answers(url)) !== wanted) await pause(50);
}

async function demo(): Promise<{ running: TestProcess; directory: string; urls: string[] }> {
  const running = baton(["demo", "--port", String(await freePort())], { cwd });
  const [, directory] = await running.told(/starting node-a, node-b, node-c in (\S+)/);
  const { nodes } = parse(readFileSync(`${directory}/node-a.yaml`, "utf8")) as {
    nodes: Record<string, string>;
  };
  return { running, directory: directory!, urls: Object.values(nodes) };
}

describe("baton demo", { skip: process.platform === "win32", timeout: 60_000 }, () => {
  it("tells who leads, sees the leader killed with -9 and another lead, and leaves no process behind on Ctrl-C", async () => {
    const { running, directory, urls } = await demo();
    await using _ = running;
    const [, first, epoch] = await running.told(/^ +(node-[abc]) leads under epoch (\d+)\.$/m);
    const [, pid] = await running.told(new RegExp(`kill -9 (\\d+) +\\(${first}, which leads\\)`));
    const pids = [...(await running.told(/NODE[^]*\n\n/))[0].matchAll(/^ +node-[abc] +(\d+) /gm)];
    assert.equal(pids.length, 3);
    process.kill(Number(pid), "SIGKILL");
    await running.told(new RegExp(`${first} ended \\(SIGKILL\\) and is started again`));
    const [, next, later, nextPid] = await running.told(
      /\d\d (node-[abc]) leads under epoch (\d+) +kill -9 (\d+)/,
    );
    assert.notEqual(next, first);
    assert.ok(Number(later) > Number(epoch));
    assert.ok(
      pids.some(([, each]) => each === nextPid),
      "the line to type names the new leader",
    );
    await running.told(new RegExp(`${first} answers`)); // the killed one is back
    await until(urls, true);
    running.child.kill("SIGINT");
    const { code, err } = await running.ended;
    assert.equal(code, 0, err);
    for (const [, each] of pids) assert.throws(() => process.kill(Number(each), 0), { code: "ESRCH" });
    assert.deepEqual(await Promise.all(urls.map(answers)), [false, false, false]);
    assert.ok(!existsSync(directory));
  });

  it("takes its nodes along when it is killed with -9", async () => {
    const { running, directory, urls } = await demo();
    await using _ = running;
    try {
      await until(urls, true);
      running.child.kill("SIGKILL");
      await running.ended;
      await until(urls, false);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });

  it("ends with the reason when a node cannot start", async () => {
    const tasks = fileURLToPath(new URL("no-such-folder", import.meta.url));
    await using running = baton(["demo", "--port", String(await freePort()), "--tasks", tasks], { cwd });
    const { code, err } = await running.ended;
    assert.equal(code, 1);
    assert.match(
      err,
      /^error: node-[abc] ended at its start \(code 78\):\nerror: there is no folder \S+no-such-folder/m,
    );
  });
});

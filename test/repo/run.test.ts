import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { fileURLToPath } from "node:url";
import { SHARED_POSTGRES } from "../support/postgres-server.ts";
import { eventually } from "../support/wait.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

it(
  "npm test that gets SIGTERM leaves no process behind",
  { skip: !existsSync("/proc/self/stat") && "there is no /proc here" },
  async () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      scripts: { test: string };
    };
    // As npm starts it: a shell that does not replace itself would keep the signal.
    const runner = spawn("sh", ["-c", `${scripts.test} process/interrupted`], {
      cwd: root,
      env: { ...process.env, [SHARED_POSTGRES]: undefined },
      stdio: "ignore",
    });
    const exited = once(runner, "exit");
    const pids = await eventually("a node", async () => {
      const below = descendants(runner.pid!);
      return below.some(({ command }) => command.includes("baton.mjs\0start")) ? below : null;
    });
    assert.ok(
      pids.some(({ command }) => command.includes("postgres")),
      "and a server",
    );
    runner.kill("SIGTERM");
    assert.deepEqual(await exited, [143, null]);
    await eventually("all of them to end", async () => pids.every(({ pid }) => !isAlive(pid)) || null);
  },
);

interface Running {
  readonly pid: number;
  readonly command: string;
}

/** All processes that this one has started, and those that they have started. */
function descendants(pid: number): Running[] {
  const lists = globSync(`/proc/${pid}/task/*/children`).map((path) => read(path));
  const children = lists.flatMap((list) => list.split(" ").filter(Boolean).map(Number));
  return children.flatMap((child) => [
    { pid: child, command: read(`/proc/${child}/cmdline`) },
    ...descendants(child),
  ]);
}

function isAlive(pid: number): boolean {
  const stat = read(`/proc/${pid}/stat`);
  return stat !== "" && !/\) [ZX] /.test(stat);
}

/** An empty text for a process that has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

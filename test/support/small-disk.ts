import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import type { TestContext } from "node:test";
import { atEnd } from "./node-cleanup.ts";
import { dataDirectory } from "./process-node.ts";

/** A small disk in memory, or the reason why there is none. */
export async function smallDisk(t: TestContext, bytes: number): Promise<string | { missing: string }> {
  if (process.platform !== "linux") return { missing: "tmpfs is a thing of Linux" };
  const dir = await dataDirectory(t);
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${bytes}`, "baton-test", dir]);
  if (mounted.status !== 0) {
    const why = mounted.error?.message ?? mounted.stderr.toString().trim();
    return { missing: `a tmpfs cannot be mounted here: ${why}` };
  }
  atEnd(t, () => assert.equal(spawnSync("umount", [dir]).status, 0, `${dir} is still mounted`));
  return dir;
}

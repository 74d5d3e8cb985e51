/** A whole node inside the test, on the real clock. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { loadSettings } from "../../src/config/load-settings.ts";
import type { JobId } from "../../src/core/ids.ts";
import { isFinal } from "../../src/core/jobs/job.ts";
import type { Job } from "../../src/core/jobs/job.ts";
import { createNode } from "../../src/node/baton-node.ts";
import type { BatonNode, NodeOptions } from "../../src/node/baton-node.ts";
import { SYSTEM } from "../../src/platform/platform.ts";
import { quickScrypt } from "./fake-platform.ts";
import { atEnd, type Scope } from "./node-cleanup.ts";

export interface NodeHereOptions extends Omit<NodeOptions, "settings"> {
  /** As in the environment, without the prefix: `{ WORKER__CONCURRENCY: "2" }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Started, and stopped with the test. Keeps jobs in memory unless told otherwise; no listener. */
export async function nodeHere(t: Scope, options: NodeHereOptions = {}): Promise<BatonNode> {
  const { settings, ...rest } = options;
  const given = { STORE: "memory", NAME: "here", HTTP__PORT: "0", ...settings };
  const environment = Object.fromEntries(
    Object.entries(given).map(([key, value]) => [`BATON_${key}`, value]),
  );
  const loaded = loadSettings({ environment, cwd: tmpdir() });
  const machine = { ...SYSTEM.machine, scrypt: quickScrypt };
  const node = await createNode({ http: false, settings: loaded.settings, machine, ...rest });
  await node.start();
  atEnd(t, () => node.stop({ hurry: true }));
  return node;
}

export async function temporaryDirectory(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "baton-test-"));
  atEnd(t, () => rm(dir, { recursive: true, force: true }));
  return dir;
}

export async function submit(node: BatonNode, task: string, fields: object = {}): Promise<JobId> {
  const [answer] = await node.services.jobs.submit([{ task, ...fields }]);
  return answer!.id;
}

export async function jobWhen(node: BatonNode, id: JobId, holds: (job: Job) => boolean): Promise<Job> {
  const signal = AbortSignal.timeout(20_000);
  for await (const _ of node.services.jobs.changes(id, signal)) {
    const job = await node.services.jobs.get(id);
    if (job && holds(job)) return job;
  }
  throw new Error(`job ${id} did not get there: ${JSON.stringify(await node.services.jobs.get(id))}`);
}

export function finished(node: BatonNode, id: JobId): Promise<Job> {
  return jobWhen(node, id, ({ status }) => isFinal(status));
}

export async function resultOf(node: BatonNode, id: JobId): Promise<unknown> {
  await finished(node, id);
  return JSON.parse((await node.services.jobs.result(id)) ?? "null");
}

export async function logsOf(node: BatonNode, id: JobId): Promise<string[]> {
  return (await node.services.jobs.logs(id, 0, 10_000)).map((line) => line.message);
}

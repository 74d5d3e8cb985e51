/** A node with something of everything on it, for a page to show. */

import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import type { Scope } from "../support/node-cleanup.ts";
import { dataDirectory, NodeProcess } from "../support/process-node.ts";

export const BROWSER_TASKS = fileURLToPath(new URL("./tasks", import.meta.url));
const LANGUAGES = fileURLToPath(new URL("../../examples/languages/tasks", import.meta.url));

export async function startNode(
  t: Scope,
  settings: Readonly<Record<string, string>> = {},
): Promise<NodeProcess> {
  return NodeProcess.start(t, {
    data: await dataDirectory(t),
    args: ["--port", "0", "--name", "solo", "--tasks", BROWSER_TASKS, "--tasks", LANGUAGES],
    settings: { RETRY__DELAY: "20ms", ...settings },
  });
}

export interface Furnished {
  readonly completed: string;
  readonly failed: string;
  readonly running: string;
  readonly waiting: string;
  readonly scheduled: string;
}

/** Jobs in every state, two kinds of failure, a paused queue, two schedules. */
export async function furnish(node: NodeProcess): Promise<Furnished> {
  const { client } = node;
  const greeting = { task: "greet", payload: { name: "Ada", times: 3 } };
  const { job_id: completed } = await client.submit(greeting);
  const fail = (message: string, queue = "default") => ({
    task: "stumble",
    queue,
    payload: { message },
    max_attempts: 1,
  });
  const failures = await client.submitMany([
    ...[1, 2, 3].map((n) => fail(`cannot reach host-${n} after ${n * 10} ms`, "mail")),
    ...[1, 2].map((n) => fail(`order ${4_000 + n} is unknown`)),
  ]);
  const { job_id: running } = await client.submit({ task: "hold" });
  const { job_id: waiting } = await client.submit({
    task: "unheard-of",
    payload: { for: "ever" },
    allow_unknown: true,
  });
  const { job_id: scheduled } = await client.submit({ ...greeting, delay_ms: 3_600_000 });
  await client.putSchedule({
    name: "nightly",
    task: "greet",
    payload: { name: "Night" },
    cron: "30 2 * * *",
  });
  await client.putSchedule({ name: "pulse", task: "tick", every_ms: 60_000 });
  await client.submit({ task: "greet", payload: { name: "Later" }, queue: "held" });
  await client.pauseQueue("held");
  await node.jobWhen(completed, ({ status }) => status === "completed");
  await node.jobWhen(failures.at(-1)!.job_id, ({ status }) => status === "failed");
  await node.processing(running);
  return { completed, failed: failures.at(0)!.job_id, running, waiting, scheduled };
}

/** Every screen by its name, as it is addressed. */
export function screensOf(furnished: Furnished): Readonly<Record<string, string>> {
  return {
    overview: "#/",
    jobs: "#/jobs",
    "jobs-failed": "#/jobs?status=failed",
    "job-completed": `#/jobs/${furnished.completed}`,
    "job-failed": `#/jobs/${furnished.failed}`,
    "job-waiting": `#/jobs/${furnished.waiting}`,
    "new-job": "#/jobs/new?task=greet",
    failures: "#/failures",
    queues: "#/queues",
    schedules: "#/schedules",
    schedule: "#/schedules/nightly",
    nodes: "#/nodes",
    leadership: "#/leadership",
    processes: "#/processes",
    "new-schedule": "#/schedules?form=new",
    "change-schedule": "#/schedules?form=change&name=nightly",
    access: "#/access",
    audit: "#/audit",
    events: "#/audit?kind=all",
    settings: "#/settings",
  };
}

/** Until the screen has what it asked for. */
export async function settled(page: Page): Promise<void> {
  await page.locator("main h1").waitFor();
  await page.locator(".loading").first().waitFor({ state: "detached" });
  await page.locator(".link.live").waitFor();
}

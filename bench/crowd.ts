/** A node with its HTTP listener, and a store as full as that of a cluster that has been busy for a week. */

import { setTimeout as sleep } from "node:timers/promises";
import { loadSettings } from "../src/config/load-settings.ts";
import { defineTask } from "../src/jobs/tasks/task.ts";
import { createNode } from "../src/node/baton-node.ts";
import type { BatonOptions } from "./baton.ts";
import { cpuMeter } from "./http-side.ts";

export const CROWD_QUEUES = 100;
const BATCH = 1_000;
/** Of twenty jobs, as many of each: those that run, fail, wait for a worker that is not there, are for later, are called off. */
const MIX = { done: 14, broken: 2, parked: 2, later: 1, unwanted: 1 };
type Share = keyof typeof MIX;
const SHARES = (Object.keys(MIX) as Share[]).flatMap((share) => Array<Share>(MIX[share]).fill(share));
const DAY_MS = 86_400_000;
const FAULTS = [
  ["ECONNRESET", "connection to host 10.0.0.17 lost"],
  ["TIMEOUT", "no answer in 3000 ms"],
  ["E_CARD", "the card was refused"],
  ["ERROR", "Cannot read properties of undefined (reading 'id')"],
] as const;

export type Crowd = Awaited<ReturnType<typeof open>>;

export async function open({ dir, url }: BatonOptions) {
  const tasks = [
    defineTask({ name: "done", run: async () => "ok" }),
    defineTask({
      name: "broken",
      run: async (payload) => {
        const [code, message] = FAULTS[(payload as { n: number }).n % FAULTS.length]!;
        throw Object.assign(new Error(message), { code });
      },
    }),
  ];
  const place = url ? { store: url } : { data: dir };
  const flags = { name: `bench-${process.pid}`, "http.port": "0", "worker.concurrency": "200", ...place };
  const { settings } = loadSettings({ cwd: import.meta.dirname, environment: {}, flags });
  const node = await createNode({ settings, tasks, http: true });
  await node.start();
  const { jobs, queues } = node.services;

  const submit = (from: number, count: number) =>
    jobs.submit(
      Array.from({ length: count }, (_, i) => {
        const n = from + i;
        const share = SHARES[n % SHARES.length]!;
        return {
          task: share,
          // Each queue has some of all.
          queue: `queue-${String((n * 7 + Math.floor(n / CROWD_QUEUES)) % CROWD_QUEUES).padStart(2, "0")}`,
          payload: { n, customer: n % 1_000, note: "as much as a small job carries with it" },
          maxAttempts: 1,
          ...(share === "later" ? { delayMs: DAY_MS } : {}),
        };
      }),
    );

  const unfinished = async (): Promise<number> => {
    const all = await queues.list();
    return all.reduce((sum, { counts }) => sum + counts.queued + counts.processing, 0);
  };

  return {
    url: () => node.url,
    pid: () => process.pid,
    /** So many jobs, numbered on; resolves when all of them are as they shall be. */
    async fill(from: number, count: number): Promise<void> {
      const waitingBefore = await unfinished();
      let stay = 0;
      for (let at = from; at < from + count; at += BATCH) {
        const answers = await submit(at, Math.min(BATCH, from + count - at));
        const unwanted = answers.filter((_, i) => SHARES[(at + i) % SHARES.length] === "unwanted");
        await Promise.all(unwanted.map(({ id }) => jobs.cancel(id, "not wanted any more")));
        stay += answers.filter((_, i) => SHARES[(at + i) % SHARES.length] === "parked").length;
      }
      while ((await unfinished()) > waitingBefore + stay) await sleep(50);
    },
    submit: async (from: number, count: number): Promise<void> => void (await submit(from, count)),
    ...cpuMeter(),
    close: () => node.stop({ hurry: true }),
  };
}

/** What it costs to look: pages of lists, overview and metrics of a store with a million jobs, and ten dashboards that are open. */

import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import { Actor } from "../actor.ts";
import { CROWD_QUEUES, type Crowd } from "../crowd.ts";
import { getPage, timesOf } from "../pages.ts";
import { absolute, type Bench, type Row, type Scenario } from "../scenario.ts";
import { coreShares } from "../server-cpu.ts";
import { median, percentile } from "../statistics.ts";

const PIECE = 20_000;
const LIST_MS_MAX = 100;
const METRICS_MS_MAX = 50;
const OVERVIEW_MS_MAX = 20;
const DASHBOARDS = 10;
const DASHBOARDS_PERCENT_MAX = 5;
/** Jobs that run while they are open: enough that something is new each second. */
const TRAFFIC = { jobs: 50, everyMs: 1_000 };

const JOBS = "/cluster/jobs?limit=50";
const HOUR_MS = 3_600_000;

/** The tabs and filters of the page of jobs, and where a page is far away or nearly nothing fits. */
function lists(half: string): Readonly<Record<string, string>> {
  const none = new Date(Date.now() - HOUR_MS * 1_000).toISOString();
  return {
    "all jobs": JOBS,
    ...Object.fromEntries(
      ["queued", "scheduled", "processing", "completed", "failed", "cancelled"].map((status) => [
        `status ${status}`,
        `${JOBS}&status=${status}`,
      ]),
    ),
    "one queue": `${JOBS}&queue=queue-42`,
    "one queue, failed": `${JOBS}&queue=queue-42&status=failed`,
    "one queue, completed": `${JOBS}&queue=queue-42&status=completed`,
    "one task": `${JOBS}&task=later`,
    "a task that nobody knows": `${JOBS}&task=nothing`,
    "failed with a code": `${JOBS}&status=failed&error_code=E_CARD`,
    "any with a code that is rare": `${JOBS}&error_code=NEVER`,
    "since the middle": `${JOBS}&since=${half}`,
    "until the middle": `${JOBS}&until=${half}`,
    "before all": `${JOBS}&until=${none}`,
    "failed until the middle": `${JOBS}&status=failed&until=${half}`,
  };
}

export const operate: Scenario = {
  name: "operate",
  about:
    "pages of lists, overview and /metrics with a million jobs in 100 queues; ten dashboards that are open",
  async run(bench) {
    const jobs = bench.quick ? 40_000 : 1_000_000;
    const place = await bench.engine.place("crowd");
    const agent = new Agent({ connections: 32, headersTimeout: 60_000, bodyTimeout: 0 });
    const half = await fill(bench, place, jobs);
    // Another process than the one that filled it, whose heap has seen a million jobs.
    const node = await Actor.open<Crowd>("./crowd.ts", { ...place });
    try {
      const url = await node.call("url");
      const pid = await node.call("pid");
      const asked = (path: string, times: number) => timesOf(agent, `${url}${path}`, times);
      const rounds = bench.quick ? 5 : 30;
      const rows: Row[] = [];
      const told = (figure: string, all: readonly number[], max: number | null): void => {
        bench.say(`${figure}: p50 ${median(all).toFixed(1)} ms, max ${Math.max(...all).toFixed(1)} ms`);
        rows.push(absolute(figure, "ms, p95", percentile(all, 0.95), max));
      };
      await asked("/cluster/overview", 3);
      told("overview", await asked("/cluster/overview", rounds), OVERVIEW_MS_MAX);
      await asked("/metrics", 2);
      told(
        `/metrics, ${CROWD_QUEUES} queues`,
        await spread(() => asked("/metrics", 1), rounds),
        METRICS_MS_MAX,
      );
      for (const [name, path] of Object.entries(lists(half)))
        told(`list: ${name}`, await asked(path, rounds), LIST_MS_MAX);
      const far = await deepPage(agent, url, 200);
      told("list: page 200", await asked(far, rounds), LIST_MS_MAX);
      told("failures by error, of the last 5,000", await asked("/cluster/failures", rounds), null);
      told("queues, every job counted", await asked("/queues", rounds), null);
      rows.push(await dashboards({ bench, agent, url, pid, node, from: jobs }));
      return rows;
    } finally {
      await node.stop();
      await agent.destroy();
    }
  },
};

/** Resolves with the time at which half of them were there. */
async function fill(bench: Bench, place: object, jobs: number): Promise<string> {
  const seeder = await Actor.open<Crowd>("./crowd.ts", { ...place });
  let half = "";
  try {
    for (let at = 0; at < jobs; at += PIECE) {
      if (at >= jobs / 2) half ||= new Date().toISOString();
      await seeder.call("fill", at, Math.min(PIECE, jobs - at));
      if ((at / PIECE) % 10 === 9) bench.say(`${(at + PIECE).toLocaleString("en-US")} jobs are there`);
    }
  } finally {
    await seeder.stop();
  }
  return half;
}

/** Some time apart, so that an answer that is kept for a second does not stand for all. */
async function spread(ask: () => Promise<number[]>, times: number): Promise<number[]> {
  const took: number[] = [];
  for (let n = 0; n < times; n++) {
    took.push(...(await ask()));
    await sleep(300);
  }
  return took;
}

async function deepPage(agent: Agent, url: string, page: number): Promise<string> {
  let path = JOBS;
  for (let n = 1; n < page; n++) {
    const { next_cursor } = JSON.parse(await getPage(agent, `${url}${path}`)) as {
      next_cursor: string | null;
    };
    if (next_cursor === null) break;
    path = `${JOBS}&cursor=${encodeURIComponent(next_cursor)}`;
  }
  return path;
}

interface Watched {
  readonly bench: Bench;
  readonly agent: Agent;
  readonly url: string;
  readonly pid: number;
  readonly node: Actor<Crowd>;
  readonly from: number;
}

/** As the page does: the live stream, and the list that is shown again after news, at most every two seconds. */
async function dashboards({ bench, agent, url, pid, node, from }: Watched): Promise<Row> {
  const measuredMs = bench.quick ? 5_000 : 30_000;
  let next = from;
  const traffic = setInterval(() => {
    node.call("submit", next, TRAFFIC.jobs).catch(() => {});
    next += TRAFFIC.jobs;
  }, TRAFFIC.everyMs);
  const percent = async (): Promise<number> => (await coreShares([pid], measuredMs))[0]! * 100;
  const left = new AbortController();
  try {
    await sleep(3_000);
    const alone = await percent();
    const screens = [JOBS, "/queues", "/cluster/nodes", `${JOBS}&status=failed`, "/schedules"];
    const open = Array.from({ length: DASHBOARDS }, (_, n) =>
      watch(agent, url, screens[n % screens.length]!, left.signal),
    );
    await sleep(3_000);
    const watched = await percent();
    left.abort();
    await Promise.allSettled(open);
    bench.say(
      `${alone.toFixed(2)} % of a core without dashboards, ${watched.toFixed(2)} % with ${DASHBOARDS}`,
    );
    return absolute(
      `${DASHBOARDS} dashboards that are open`,
      "% core",
      watched - alone,
      DASHBOARDS_PERCENT_MAX,
    );
  } finally {
    left.abort();
    clearInterval(traffic);
  }
}

async function watch(agent: Agent, url: string, screen: string, signal: AbortSignal): Promise<void> {
  const { body } = await request(`${url}/cluster/live`, { dispatcher: agent, signal });
  let askedAt = 0;
  for await (const _ of body) {
    if (performance.now() - askedAt < 2_000) continue;
    askedAt = performance.now();
    await getPage(agent, `${url}${screen}`);
  }
}

/** Much news, and many pages: the page stays smooth, and the node hardly notices. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import type { Page } from "playwright-core";
import { systemClock } from "../../src/platform/clock.ts";
import type { NodeProcess } from "../support/process-node.ts";
import { assertQuiet, noBrowser, TestBrowser, watch } from "./chromium.ts";
import { settled, startNode } from "./world.ts";

const SECONDS = 60;
const PER_SECOND = 500;
const JOBS = 4;
const GAP_MS_MAX = 200;
/** Of one core. */
const SHARE_MAX = 0.05;

describe("the dashboard under load", { skip: noBrowser() ?? false }, () => {
  it(`draws ${PER_SECOND} lines a second for ${SECONDS} s without a pause of ${GAP_MS_MAX} ms`, async (t) => {
    const [node, browser] = await Promise.all([startNode(t), TestBrowser.start(t)]);
    // One after the other: a log has at most ten thousand lines.
    const lines = (SECONDS / JOBS) * PER_SECOND;
    const watched = await browser.open(`${node.url}/`);
    const { page } = watched;
    await settled(page);
    await countFrames(page);
    for (let n = 0; n < JOBS; n++) {
      const { job_id } = await node.client.submit({
        task: "narrate",
        payload: { lines, perSecond: PER_SECOND },
      });
      await page.goto(`${node.url}/#/jobs/${job_id}`);
      await page.getByLabel("Log lines").waitFor();
      await page
        .getByLabel("Log lines")
        .getByText(`line ${lines} of ${lines}`)
        .waitFor({ timeout: 2 * SECONDS * 1_000 });
      await page.getByText(`${lines.toLocaleString("en-US")} lines`, { exact: true }).waitFor();
    }
    const frames = await framesOf(page);
    t.diagnostic(`log: ${told(frames)}`);
    assert.ok(frames.longestMs < GAP_MS_MAX, told(frames));
    assert.ok(frames.count > SECONDS * 20, told(frames));
    assertQuiet(watched);
  });

  it(`shows a cluster through which ${PER_SECOND} jobs a second go, as smoothly`, async (t) => {
    const [node, browser] = await Promise.all([startNode(t), TestBrowser.start(t)]);
    const watched = await browser.open(`${node.url}/`);
    const { page } = watched;
    await settled(page);
    await countFrames(page);
    const until = systemClock.monotonic() + SECONDS * 1_000;
    let sent = 0;
    for (let at = systemClock.monotonic(); at < until; at = systemClock.monotonic()) {
      await node.client.submitMany(Array.from({ length: PER_SECOND / 10 }, () => ({ task: "tick" })));
      sent += PER_SECOND / 10;
      await systemClock.sleep(Math.max(0, at + 100 - systemClock.monotonic()));
    }
    const frames = await framesOf(page);
    t.diagnostic(`overview: ${sent} jobs, ${told(frames)}`);
    assert.ok(frames.longestMs < GAP_MS_MAX, told(frames));
    assertQuiet(watched);
  });

  it("serves ten open pages of one browser, and costs the node next to nothing", async (t) => {
    const [node, browser] = await Promise.all([startNode(t), TestBrowser.start(t)]);
    const context = await browser.context();
    const screens = [
      "",
      "jobs",
      "failures",
      "queues",
      "schedules",
      "nodes",
      "leadership",
      "processes",
      "audit",
      "settings",
    ];
    const before = await shareOf(node, 15_000);
    const pages: { page: Page; complaints: string[] }[] = [];
    for (const screen of screens) {
      const page = await context.newPage();
      pages.push({ page, complaints: watch(page) });
      await page.goto(`${node.url}/#/${screen}`);
      await settled(page);
    }
    const share = (await shareOf(node, 30_000)) - before;
    t.diagnostic(`ten pages: ${(share * 100).toFixed(1)} % of a core`);
    assert.ok(share < SHARE_MAX, `${share}`);
    // More than the six connections that a browser has to one address, and all of them are live.
    const { job_id } = await node.client.submit({ task: "narrate", payload: { lines: 400, perSecond: 100 } });
    for (const { page } of pages) await page.goto(`${node.url}/#/jobs/${job_id}`);
    for (const { page, complaints } of pages) {
      await page.getByLabel("Log lines").getByText("line 400 of 400").waitFor();
      await page.locator(".link.live").waitFor();
      assert.deepEqual(complaints, []);
    }
  });
});

interface Frames {
  readonly count: number;
  readonly longestMs: number;
  readonly over50: number;
}

async function countFrames(page: Page): Promise<void> {
  await page.evaluate(() => {
    const frames = { count: 0, longestMs: 0, over50: 0 };
    let last = performance.now();
    const next = (at: number): void => {
      const gap = at - last;
      last = at;
      frames.count++;
      frames.longestMs = Math.max(frames.longestMs, gap);
      if (gap > 50) frames.over50++;
      requestAnimationFrame(next);
    };
    requestAnimationFrame((at) => {
      last = at;
      requestAnimationFrame(next);
    });
    (globalThis as { frames?: Frames }).frames = frames;
  });
}

function framesOf(page: Page): Promise<Frames> {
  return page.evaluate(() => (globalThis as unknown as { frames: Frames }).frames);
}

function told({ count, longestMs, over50 }: Frames): string {
  return `${count} frames, the longest pause ${Math.round(longestMs)} ms, ${over50} above 50 ms`;
}

/** How much of one core a process uses; Linux counts in hundredths of a second. */
async function shareOf(node: NodeProcess, forMs: number): Promise<number> {
  const used = (): number => {
    const fields = readFileSync(`/proc/${node.pid}/stat`, "utf8")
      .replace(/^.*\) /, "")
      .split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10;
  };
  const [from, at] = [used(), systemClock.monotonic()];
  await systemClock.sleep(forMs);
  return (used() - from) / (systemClock.monotonic() - at);
}

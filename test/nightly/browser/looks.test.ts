/** Every screen in light, dark and on a phone: accessible, and kept as a picture in test/browser/output. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { suiteScope } from "../../support/node-cleanup.ts";
import { PeerCluster, QUICK_PEERS } from "../../support/peer-cluster.ts";
import {
  assertAccessible,
  assertFits,
  assertQuiet,
  barriersOn,
  keepScreenshot,
  noBrowser,
  TestBrowser,
} from "../../browser/chromium.ts";
import { BROWSER_TASKS, furnish, screensOf, settled } from "../../browser/world.ts";
import type { Furnished } from "../../browser/world.ts";

const MODES = {
  light: { colorScheme: "light" },
  dark: { colorScheme: "dark" },
  phone: { colorScheme: "light", viewport: { width: 360, height: 740 } },
  "phone-dark": { colorScheme: "dark", viewport: { width: 360, height: 740 } },
} as const;

describe("how the dashboard looks", { skip: noBrowser() ?? false }, () => {
  const scope = suiteScope();
  let cluster: PeerCluster;
  let browser: TestBrowser;
  let furnished: Furnished;

  before(async () => {
    browser = await TestBrowser.start(scope);
    cluster = await PeerCluster.open(scope, { settings: { ...QUICK_PEERS, RETRY__DELAY: "20ms" } });
    await Promise.all(
      cluster.names.map(async (name) => {
        const args = ["--config", await cluster.writeFile(name), "--tasks", BROWSER_TASKS];
        await cluster.start(name, { args });
      }),
    );
    await cluster.gathered();
    furnished = await furnish(cluster.node("node-a"));
    // One term that is over, for the history of leadership.
    const { name } = await cluster.leader();
    await cluster.terminate(name);
    await cluster.leader();
    const args = ["--config", await cluster.writeFile(name), "--tasks", BROWSER_TASKS];
    await cluster.restart(name, { args });
  });

  for (const [mode, options] of Object.entries(MODES)) {
    it(`in ${mode}: every screen is accessible and fits`, async () => {
      const watched = await browser.open(`${cluster.url("node-b")}/`, options);
      const { page } = watched;
      await settled(page);
      const barriers: string[] = [];
      for (const [name, hash] of Object.entries(screensOf(furnished))) {
        await page.goto(`${cluster.url("node-b")}/${hash}`);
        await settled(page);
        await page.waitForTimeout(1_500); // charts and lists that are asked for after the first answer
        await keepScreenshot(page, `${name}-${mode}`);
        await assertFits(page, `${name} in ${mode}`);
        barriers.push(...(await barriersOn(page, `${name} in ${mode}`)));
      }
      assert.deepEqual(barriers, []);
      assertQuiet(watched);
    });
  }

  it("in its dialogs too", async () => {
    const watched = await browser.open(`${cluster.url("node-b")}/#/nodes`);
    const { page } = watched;
    await settled(page);
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await keepScreenshot(page, "keys-light");
    await assertAccessible(page, "keys");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Drain node-c" }).click();
    await page.getByRole("dialog").waitFor();
    await keepScreenshot(page, "confirm-light");
    await assertAccessible(page, "confirm");
    await page.keyboard.press("Escape");
    await page.goto(`${cluster.url("node-b")}/#/failures`);
    await page.getByRole("button", { name: "Retry all failed…" }).click();
    await page
      .getByRole("dialog")
      .getByRole("button", { name: /^Retry \d+ jobs/ })
      .waitFor();
    await keepScreenshot(page, "bulk-light");
    await assertAccessible(page, "bulk");
    assertQuiet(watched);
  });
});

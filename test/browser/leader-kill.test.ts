import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Page } from "playwright-core";
import { eventually } from "../support/process-node.ts";
import { PeerCluster, QUICK_PEERS } from "../support/peer-cluster.ts";
import { assertQuiet, noBrowser, TestBrowser } from "./chromium.ts";
import { settled } from "./world.ts";

type Leader = Pick<Awaited<ReturnType<PeerCluster["leader"]>>, "name" | "epoch">;

/** What browsers say of a connection that breaks. */
const BROKEN = /ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY_RESPONSE|Failed to fetch|status of 50\d/;

describe("a cluster that is hurt while somebody looks", { skip: noBrowser() ?? false }, () => {
  it("shows the next leader and its epoch on another node, and says on the killed one that it is gone", async (t) => {
    const [cluster, browser] = await Promise.all([PeerCluster.start(t), TestBrowser.start(t)]);
    const leader = await cluster.leader();
    const other = cluster.others(leader.name).at(0)!;
    const dying = await browser.open(`${leader.node.url}/`, { expected: BROKEN });
    const living = await browser.open(`${other.url}/`, { expected: BROKEN });
    await Promise.all([settled(dying.page), settled(living.page)]);
    await shows(living.page, leader);

    await cluster.kill(leader.name);
    const next = await eventually(
      "the page to show the next leader",
      async () => {
        const now = await cluster.leader();
        return (await isShown(living.page, now)) ? now : null;
      },
      30_000,
    );
    assert.ok(next.epoch > leader.epoch);
    await dying.page.getByText(`Disconnected from ${leader.name}`).waitFor();
    await dying.page.locator(".link.lost", { hasText: "reconnecting…" }).waitFor();
    const way = dying.page.getByRole("link", { name: next.name });
    assert.equal(new URL((await way.first().getAttribute("href"))!).origin, next.node.url);

    await living.page.goto(`${other.url}/#/leadership`);
    await living.page.getByRole("row", { name: new RegExp(`^${next.epoch}\\b.*${next.name}`) }).waitFor();
    await living.page.goto(`${other.url}/#/nodes`);
    await living.page
      .getByRole("row", { name: new RegExp(leader.name) })
      .first()
      .locator(".status.bad")
      .waitFor();

    await cluster.restart(leader.name);
    await dying.page.locator(".link.live").waitFor();
    await dying.page.getByText("Disconnected from").waitFor({ state: "detached" });
    assertQuiet(dying);
    assertQuiet(living);
  });

  /** A leader that was just elected is told of in the next overview. */
  async function shows(page: Page, leader: Leader): Promise<void> {
    await eventually(`${leader.name} to be shown`, async () => (await isShown(page, leader)) || null);
  }

  async function isShown(page: Page, { name, epoch }: Leader): Promise<boolean> {
    const tile = page.locator(".tiles > div", { hasText: "Leader" });
    const text = await tile.textContent();
    return text?.includes(name) === true && Number(await page.getByTestId("epoch").textContent()) === epoch;
  }

  it("drains a node and lets it work again, with what becomes of it", async (t) => {
    const [cluster, browser] = await Promise.all([
      PeerCluster.start(t, { settings: QUICK_PEERS }),
      TestBrowser.start(t),
    ]);
    const watched = await browser.open(`${cluster.url("node-a")}/#/nodes`);
    const { page } = watched;
    await settled(page);
    const row = page
      .getByRole("region", { name: "Nodes", exact: true })
      .getByRole("row", { name: /^node-b/ });
    await page.getByRole("button", { name: "Drain node-b" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Drain node-b" }).click();
    await row.locator(".status", { hasText: "draining" }).waitFor();
    await page.getByText("is drained: nothing runs on it").waitFor();
    await page.getByRole("button", { name: "Resume node-b" }).click();
    await row.locator(".status", { hasText: "active" }).waitFor();
    const matrix = page.getByRole("region", { name: "Who reaches whom" });
    await matrix
      .getByRole("row", { name: /^node-a/ })
      .locator(".good-text")
      .nth(1)
      .waitFor();
    assertQuiet(watched);
  });
});

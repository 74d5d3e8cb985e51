import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import type { Page } from "playwright-core";
import { suiteScope } from "../support/node-cleanup.ts";
import { eventually } from "../support/wait.ts";
import { PeerCluster, QUICK_PEERS } from "../support/peer-cluster.ts";
import { assertQuiet, noBrowser, TestBrowser } from "./chromium.ts";
import type { WatchedPage } from "./chromium.ts";
import { settled } from "./world.ts";

type Leader = Pick<Awaited<ReturnType<PeerCluster["leader"]>>, "name" | "epoch">;

/** A browser keeps the machine busy, and a node that is silent for a second or two meanwhile is not dead. */
const LEASES = { LEADER__LEASE: "5s", LEADER__MARGIN: "1500ms", NODE__DEAD_AFTER: "5s" };
/** What browsers say of a connection that breaks. */
const BROKEN = /ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY_RESPONSE|Failed to fetch|status of 50\d/;

describe("a cluster that is hurt while somebody looks", { skip: noBrowser() ?? false }, () => {
  const scope = suiteScope();
  let cluster: PeerCluster;
  let browser: TestBrowser;

  before(async () => {
    [cluster, browser] = await Promise.all([
      PeerCluster.start(scope, { settings: { ...QUICK_PEERS, ...LEASES } }),
      TestBrowser.start(scope),
    ]);
  });

  it("drains a node and lets it work again, and names one that is silent while it shows the rest", async () => {
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
    await saysWhoIsSilent(watched);
    assertQuiet(watched);
  });

  /** One of three is frozen: the page names it and shows what the others have, until it is back. */
  async function saysWhoIsSilent({ page }: WatchedPage): Promise<void> {
    const { client } = cluster.node("node-a");
    // The turn goes round among those that are up, and the jobs wait there for ever.
    const placed = new Map<string, number>(cluster.names.map((name) => [name, 0]));
    while (Math.min(...placed.values()) < 2) {
      const { job_id } = await client.submit({ task: "unheard-of", allow_unknown: true });
      const name = cluster.names.find((each) => job_id.startsWith(`${each}-`))!;
      placed.set(name, placed.get(name)! + 1);
      assert.ok(placed.get(name)! < 20, JSON.stringify([...placed]));
    }
    await page.goto(`${cluster.url("node-a")}/#/jobs`);
    const rows = (name: string) => page.locator("tbody tr", { has: page.locator(`a[title^="${name}-"]`) });
    for (const name of cluster.names) await rows(name).nth(1).waitFor();
    const banner = page.locator("main .banner.wait");
    assert.equal(await banner.count(), 0);

    cluster.node("node-c").signal("SIGSTOP");
    await banner.getByText("node-c cannot be reached").waitFor();
    await rows("node-c").first().waitFor({ state: "detached" });
    for (const name of ["node-a", "node-b"]) assert.equal(await rows(name).count(), placed.get(name));
    for (const screen of ["", "failures", "queues", "leadership", "audit"]) {
      await page.goto(`${cluster.url("node-a")}/#/${screen}`);
      await banner.getByText("node-c cannot be reached").waitFor();
      await page.locator(".loading").first().waitFor({ state: "detached" });
      assert.equal(await page.locator("[role=alert]").count(), 0, `${screen} shows the rest`);
    }
    cluster.node("node-c").signal("SIGCONT");
    await page.goto(`${cluster.url("node-a")}/#/jobs`);
    await banner.waitFor({ state: "detached" });
    await rows("node-c").nth(1).waitFor();
  }

  it("shows the next leader and its epoch on another node, and says on the killed one that it is gone", async () => {
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
});

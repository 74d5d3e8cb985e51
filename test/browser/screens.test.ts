import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { suiteScope } from "../support/node-cleanup.ts";
import type { NodeProcess } from "../support/process-node.ts";
import { assertFits, assertQuiet, noBrowser, TestBrowser, watch } from "./chromium.ts";
import { furnish, screensOf, settled, startNode } from "./world.ts";
import type { Furnished } from "./world.ts";

describe("the dashboard in a browser", { skip: noBrowser() ?? false }, () => {
  const scope = suiteScope();
  let node: NodeProcess;
  let browser: TestBrowser;
  let furnished: Furnished;

  before(async () => {
    [node, browser] = await Promise.all([startNode(scope), TestBrowser.start(scope)]);
    furnished = await furnish(node);
  });

  it("shows every screen without a complaint of the browser, and nothing wider than a phone", async () => {
    const watched = await browser.open(`${node.url}/`, { viewport: { width: 360, height: 740 } });
    const { page } = watched;
    for (const [name, hash] of Object.entries(screensOf(furnished))) {
      await page.goto(`${node.url}/${hash}`);
      await settled(page);
      assert.equal(await page.locator(".note.bad[role=alert]").count(), 0, `${name} has a problem`);
      await assertFits(page, name);
    }
    assertQuiet(watched);
  });

  it("leads with the keyboard alone to every screen, to the search and to the list of keys", async () => {
    const watched = await browser.open(`${node.url}/`);
    const { page } = watched;
    await settled(page);
    // Two keys are a pair within a second and a half, which a busy machine may need for one.
    await page.clock.setFixedTime(new Date());
    const heading = page.locator("h1");
    for (const [key, title] of [
      ["j", "Jobs"],
      ["f", "Failures"],
      ["q", "Queues"],
      ["s", "Schedules"],
      ["n", "Nodes"],
      ["l", "Leadership"],
      ["p", "Processes"],
      ["u", "Access"],
      ["a", "Audit"],
      ["e", "Settings"],
      ["o", "Overview"],
    ] as const) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await heading.filter({ hasText: title }).waitFor();
    }
    await page.keyboard.press("g");
    await page.keyboard.press("j");
    await page.locator("input[type=search][name=find]").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("greet?");
    assert.equal(
      await page.locator("input[type=search][name=find]").inputValue(),
      "greet?",
      "keys that are typed do nothing else",
    );
    await page.keyboard.press("Escape");
    await page.locator("h1").click();
    await page.keyboard.press("?");
    await page.getByRole("dialog").getByText("Leadership").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.reload();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Skip to the content");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "main");
    assertQuiet(watched);
  });

  it("keeps filters in the address, and shows somebody else the same list", async () => {
    const watched = await browser.open(`${node.url}/#/jobs?status=failed`);
    const { page } = watched;
    await settled(page);
    const rows = page.locator("tbody tr");
    await rows.nth(4).waitFor();
    assert.equal(await rows.count(), 5);
    await page.getByLabel("Queue").selectOption("mail");
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 3);
    const shared = await page.context().newPage();
    const complaints = watch(shared);
    await shared.goto(page.url());
    await shared.waitForFunction(() => document.querySelectorAll("tbody tr").length === 3);
    assert.equal(await shared.getByLabel("Queue").inputValue(), "mail");
    assert.deepEqual(complaints, []);
    assertQuiet(watched);
  });

  it("pages through a long list without losing or repeating a job", async () => {
    const jobs = Array.from({ length: 120 }, () => ({ task: "tick", queue: "long" }));
    await node.client.submitMany(jobs);
    const watched = await browser.open(`${node.url}/#/jobs?queue=long`);
    const { page } = watched;
    const seen: string[] = [];
    for (let part = 1; ; part++) {
      await settled(page);
      await page.locator("tbody tr").first().waitFor();
      seen.push(
        ...(await page
          .locator("tbody a.mono")
          .evaluateAll((all) => all.map((each) => (each as HTMLElement).title))),
      );
      const next = page.getByRole("link", { name: "Older →" });
      if ((await next.count()) === 0) break;
      assert.ok(part < 4);
      const before = seen.at(-1)!;
      await next.click();
      await page.waitForFunction((last) => !document.querySelector(`a[title="${last}"]`), before);
    }
    assert.equal(seen.length, 120);
    assert.equal(new Set(seen).size, 120);
    await page.getByRole("link", { name: "← Newest" }).click();
    await page.locator(`a[title="${seen[0]}"]`).waitFor();
    assertQuiet(watched);
  });

  it("is light or dark as the system has it, unless somebody chose", async () => {
    const { page } = await browser.open(`${node.url}/`, { colorScheme: "dark" });
    await settled(page);
    const background = (): Promise<string> =>
      page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await background();
    await page.emulateMedia({ colorScheme: "light" });
    const light = await background();
    assert.notEqual(dark, light);
    await page.getByRole("button", { name: "Colours: auto" }).click();
    await page.getByRole("button", { name: "Colours: light" }).click();
    assert.equal(await background(), dark);
    await page.reload();
    await settled(page);
    assert.equal(await background(), dark, "a choice outlives the page");
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agentOf, ControllerProcess } from "../process/controller/world.ts";
import { assertQuiet, noBrowser, TestBrowser } from "./chromium.ts";
import { settled } from "./world.ts";

describe("a node under a node-controller", { skip: noBrowser() ?? false }, () => {
  it("is shown with its processes, and with why one of them was started again", async (t) => {
    const [supervisor, browser] = await Promise.all([ControllerProcess.start(t), TestBrowser.start(t)]);
    const first = await supervisor.leading();
    const watched = await browser.open(`${first.url}/#/processes`, { expected: /ERR_|status of 50\d/ });
    const { page } = watched;
    await settled(page);
    const row = (name: RegExp) =>
      page.getByRole("region", { name: "Supervised processes" }).getByRole("row", { name });
    await row(/controller/)
      .locator(".status", { hasText: "running" })
      .waitFor();
    assert.equal(
      await row(/controller/)
        .locator("td")
        .nth(3)
        .textContent(),
      String(first.controller.pid),
    );
    await row(/agent/)
      .locator(".status", { hasText: agentOf(first).state })
      .waitFor();

    process.kill(first.controller.pid!, "SIGKILL");
    const again = await supervisor.when("another controller", ({ controller, role }) => {
      return controller.restarts === 1 && role === "LEADER";
    });
    // Started again, it may listen elsewhere.
    await page.goto(`${again.url}/#/processes`);
    await row(/controller/)
      .locator("td")
      .nth(6)
      .getByText("SIGKILL")
      .waitFor();
    assert.equal(
      await row(/controller/)
        .locator("td")
        .nth(5)
        .textContent(),
      "1",
    );
    assertQuiet(watched);
  });
});

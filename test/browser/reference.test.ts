import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertAccessible, assertFits, assertQuiet, noBrowser, TestBrowser } from "./chromium.ts";
import { startNode } from "./world.ts";

describe("the API reference in a browser", { skip: noBrowser() ?? false }, () => {
  it("finds an operation, shows its schemas, and sends it to the node", async (t) => {
    const [node, browser] = await Promise.all([startNode(t), TestBrowser.start(t)]);
    const watched = await browser.open(`${node.url}/docs`, { viewport: { width: 360, height: 740 } });
    const { page } = watched;
    await page.getByRole("heading", { name: /API reference/ }).waitFor();
    await page.getByLabel("Find").fill("post /jobs submit");
    const submit = page.locator("#submit_jobs");
    await submit.locator("summary").click();
    await submit.getByText("idempotency_key").first().waitFor();
    await submit.getByLabel("Body (JSON)").fill('{"task":"greet","payload":{"name":"Ada","times":1}}');
    await submit.getByRole("button", { name: "Send POST /jobs" }).click();
    const answer = submit.getByRole("region", { name: "Answer" });
    await answer.getByText('"job_id"').waitFor();
    const id = /"job_id": "([^"]+)"/.exec(await answer.innerText())?.[1];
    assert.ok(id);
    await assertAccessible(page, "reference");
    await assertFits(page, "reference");

    await page.getByLabel("Find").fill("get_job why");
    const read = page.locator("details.operation", { has: page.getByText("/jobs/{id}", { exact: true }) });
    await read.locator("summary").click();
    await read.getByLabel(/^id/).fill(id);
    await read.getByRole("button", { name: "Send GET" }).click();
    await read.getByRole("region", { name: "Answer" }).getByText('"greet"').waitFor();
    assertQuiet(watched);
  });
});

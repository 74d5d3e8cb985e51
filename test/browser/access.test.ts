import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertAccessible, assertQuiet, noBrowser, TestBrowser } from "./chromium.ts";
import { settled, startNode } from "./world.ts";

const TOKEN = "a-token-that-is-known-before-the-first-start";
const PASSWORD = "correct horse battery staple";

describe("a node that asks who one is", { skip: noBrowser() ?? false }, () => {
  it("shows a sign-in, then what the permission allows, and why the rest is not", async (t) => {
    const [node, browser] = await Promise.all([
      startNode(t, { ACCESS__REQUIRED: "always", ACCESS__TOKEN: TOKEN }),
      TestBrowser.start(t),
    ]);
    const send = async (path: string, body: unknown): Promise<Response> => {
      const headers = { "content-type": "application/json", authorization: `Bearer ${TOKEN}` };
      return fetch(`${node.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    };
    for (const [name, permission] of [
      ["reader", "read"],
      ["keeper", "operate"],
    ]) {
      assert.equal((await send("/users", { name, permission, password: PASSWORD })).status, 201);
    }
    assert.equal((await send("/jobs", { task: "tick", queue: "mail" })).status, 200);

    const watched = await browser.open(`${node.url}/#/queues`, { expected: /status of 401/ });
    const { page } = watched;
    await page.getByRole("heading", { name: "Sign in to Baton" }).waitFor();
    await assertAccessible(page, "sign-in");
    const signIn = async (name: string, password: string): Promise<void> => {
      await page.getByLabel("Name").fill(name);
      await page.getByLabel("Password").fill(password);
      await page.getByRole("button", { name: "Sign in" }).click();
    };
    await signIn("reader", "a guess");
    await page.getByRole("alert").getByText("The name or the password is wrong").waitFor();

    await signIn("reader", PASSWORD);
    await settled(page);
    const pause = page.getByRole("button", { name: "Pause mail" });
    assert.equal(await pause.isDisabled(), true);
    assert.match((await pause.getAttribute("title"))!, /needs the permission operate.*reader may only read/);
    await page.getByText("signed in as reader").waitFor();
    const cookies = await page.context().cookies();
    assert.deepEqual(
      cookies.map(({ httpOnly, sameSite }) => ({ httpOnly, sameSite })),
      [{ httpOnly: true, sameSite: "Strict" }],
    );

    await page.getByRole("button", { name: "sign out" }).click();
    await page.getByRole("heading", { name: "Sign in to Baton" }).waitFor();
    await signIn("keeper", PASSWORD);
    await settled(page);
    await pause.click();
    await page.getByRole("dialog").getByRole("button", { name: "Pause the queue" }).click();
    await page.getByRole("row", { name: /^mail/ }).locator(".status", { hasText: "paused" }).waitFor();
    await page.goto(`${node.url}/#/audit`);
    await page.getByRole("row", { name: /keeper.*pause queue/ }).waitFor();
    assertQuiet(watched);
  });
});

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
      ["owner", "admin"],
    ]) {
      assert.equal((await send("/users", { name, permission, password: PASSWORD })).status, 201);
    }
    assert.equal((await send("/jobs", { task: "tick", queue: "mail" })).status, 200);

    const watched = await browser.open(`${node.url}/#/queues`, { expected: /status of 40[01]/ });
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

    const access = page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "Access" });
    assert.equal(await access.count(), 0, "not for those who may not");
    await page.goto(`${node.url}/#/access`);
    await page.getByText("This needs the permission admin").waitFor();
    await page.getByRole("button", { name: "sign out" }).click();
    await signIn("owner", PASSWORD);
    await access.click();
    const status = async (token: string): Promise<number> =>
      (await fetch(`${node.url}/cluster`, { headers: { authorization: `Bearer ${token}` } })).status;

    const tokens = page.getByRole("region", { name: "Tokens" });
    await page.getByText("New token").click();
    const form = page.getByRole("form", { name: "New token" });
    await form.getByLabel("Name").fill("ci");
    await form.getByLabel("Expires").selectOption("in 30 days");
    await form.getByRole("button", { name: "Create token" }).click();
    const secret = (await page.getByTestId("token").textContent())!;
    assert.equal(await status(secret), 200);
    await tokens
      .getByRole("row", { name: /^ci submit/ })
      .getByText(/in (?:29|30)d/)
      .waitFor();
    await assertAccessible(page, "access");
    await page.getByRole("button", { name: "Done" }).click();
    assert.ok(!(await page.content()).includes(secret), "it is shown once");
    await page.getByRole("button", { name: "Revoke ci" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke the token" }).click();
    await tokens.getByRole("row", { name: /^ci/ }).waitFor({ state: "detached" });
    assert.equal(await status(secret), 401);

    await page.getByText("New user").click();
    const person = page.getByRole("form", { name: "New user" });
    await person.getByLabel("Name").fill("ann");
    await person.getByLabel("Password").fill("short");
    await person.getByRole("button", { name: "Add the user" }).click();
    await person.locator(".field.wrong", { hasText: "Password" }).waitFor();
    await person.getByLabel("Password").fill(PASSWORD);
    await person.getByRole("button", { name: "Add the user" }).click();
    const users = page.getByRole("region", { name: "Users" });
    await users.getByRole("row", { name: /^ann read/ }).waitFor();
    await page.getByRole("button", { name: "New password for ann" }).click();
    await page.getByRole("dialog").getByLabel("Password").fill(`${PASSWORD} again`);
    await page.getByRole("dialog").getByRole("button", { name: "Set the password" }).click();
    await page.getByText("ann has another password").waitFor();
    await page.getByRole("button", { name: "Remove ann" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove the user" }).click();
    await users.getByRole("row", { name: /^ann/ }).waitFor({ state: "detached" });
    assertQuiet(watched);
  });
});

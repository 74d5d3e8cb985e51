import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { assertQuiet, noBrowser, TestBrowser, watch } from "./chromium.ts";
import { settled, startNode } from "./world.ts";

const ASSETS = fileURLToPath(new URL("../../dashboard/dist/assets", import.meta.url));
const SCRIPT_BYTES_MAX = 150_000;

describe("the files of the dashboard", () => {
  it("are small: all scripts together below 150 kB", () => {
    const scripts = globSync("*.js", { cwd: ASSETS });
    assert.ok(scripts.length >= 2, "the page and its worker");
    const bytes = scripts.reduce((sum, name) => sum + gzipSync(readFileSync(`${ASSETS}/${name}`)).length, 0);
    assert.ok(bytes < SCRIPT_BYTES_MAX, `${bytes} bytes`);
  });
});

describe("the way of the dashboard to a browser", { skip: noBrowser() ?? false }, () => {
  it("ends well also where the browser's language is none", async (t) => {
    const [node, browser] = await Promise.all([startNode(t), TestBrowser.start(t)]);
    // As a Chromium in the locale C calls it.
    const context = await browser.context();
    await context.addInitScript(() => {
      Object.defineProperty(navigator, "language", { value: "en-US@posix", configurable: true });
    });
    const foreign = await context.newPage();
    const complaints = watch(foreign);
    await foreign.goto(`${node.url}/`);
    await settled(foreign);
    assert.deepEqual(complaints, []);
  });

  it("may lead through a prefix, whether the proxy cuts it off or passes it on", async (t) => {
    const [cut, kept, browser] = await Promise.all([
      startNode(t),
      startNode(t, { HTTP__BASE_PATH: "/ops/baton" }),
      TestBrowser.start(t),
    ]);
    const proxy = createServer((incoming, outgoing) => {
      const path = incoming.url!.slice("/ops/baton".length) || "/";
      const onward = request(
        `${cut.url}${path}`,
        { method: incoming.method, headers: incoming.headers },
        (reply) => {
          outgoing.writeHead(reply.statusCode!, reply.headers);
          reply.pipe(outgoing);
        },
      );
      onward.on("error", () => outgoing.destroy());
      outgoing.on("close", () => onward.destroy());
      incoming.pipe(onward);
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    t.after(() => {
      proxy.closeAllConnections();
      proxy.close();
    });
    const origins = [`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, kept.url];
    for (const origin of origins) {
      const watched = await browser.open(`${origin}/ops/baton/`);
      const { page } = watched;
      await settled(page);
      await page.goto(`${origin}/ops/baton/#/jobs/new?task=greet`);
      await page.getByLabel("name").fill("Prefix");
      await page.getByRole("button", { name: "Submit the job" }).click();
      await page.locator(".job-state .status", { hasText: "completed" }).waitFor();
      await page.getByLabel("Log lines").getByText("greeting 1").waitFor();
      assert.match(page.url(), /\/ops\/baton\/#\/jobs\//);
      assertQuiet(watched);
    }
  });
});

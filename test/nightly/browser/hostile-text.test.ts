import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import type { Page } from "playwright-core";
import { suiteScope } from "../../support/node-cleanup.ts";
import type { NodeProcess } from "../../support/process-node.ts";
import { assertQuiet, noBrowser, TestBrowser } from "../../browser/chromium.ts";
import { settled, startNode } from "../../browser/world.ts";

/** What has broken other dashboards: each would make an element, run a script or leave the text that it stands in. */
const CORPUS = [
  `<script>window.hacked=1</script>`,
  `<img src=x onerror="window.hacked=1">`,
  `"><svg/onload=window.hacked=1>`,
  `'-window.hacked=1-'`,
  `<iframe srcdoc="<script>parent.hacked=1</script>">`,
  `javascript:window.hacked=1`,
  `<a href="javascript:window.hacked=1">x</a>`,
  `{{constructor.constructor('window.hacked=1')()}}`,
  `<style>*{display:none}</style>`,
  `<math><mtext></mtext><mglyph><style><img src=x onerror=window.hacked=1>`,
  `</textarea></pre></code><h1>owned</h1>`,
  `\u202Egnp.exe <b>bold</b>`,
  `\u001b]8;;javascript:window.hacked=1\u0007click\u001b]8;;\u0007`,
];

describe("texts that others wrote", { skip: noBrowser() ?? false }, () => {
  const scope = suiteScope();
  let node: NodeProcess;
  let browser: TestBrowser;

  before(async () => {
    [node, browser] = await Promise.all([startNode(scope), TestBrowser.start(scope)]);
  });

  it("are shown as they are, and never become a part of the page", async () => {
    const everything = CORPUS.join("\n");
    const failing = await node.client.submitMany(
      CORPUS.map((text) => ({
        task: "stumble",
        payload: { message: text, code: text.slice(0, 60), [text]: text },
        idempotency_key: `${text} key`.replaceAll(/\p{Cc}/gu, ""),
        max_attempts: 1,
      })),
    );
    const { job_id: talking } = await node.client.submit({ task: "say", payload: { lines: CORPUS } });
    const held = await node.begins({ task: "hold", payload: everything });
    await node.client.cancel(held, everything.slice(0, 1_000));
    await node.client.putSchedule({ name: "hostile", task: "say", payload: CORPUS, every_ms: 3_600_000 });
    await node
      .post("/v1/leases", {
        agent: "ada",
        capabilities: ["none"],
        timeout_ms: 0,
        version: CORPUS[1],
        labels: Object.fromEntries(CORPUS.map((text) => [text, text])),
      })
      .catch(() => {}); // 204 has no body
    for (const { job_id } of failing) await node.jobWhen(job_id, ({ status }) => status === "failed");
    await node.jobWhen(talking, ({ status }) => status === "completed");
    await node.jobWhen(held, ({ status }) => status === "cancelled");

    const watched = await browser.open(`${node.url}/`);
    const { page } = watched;
    const places = [
      "#/",
      "#/jobs",
      "#/failures",
      "#/schedules/hostile",
      "#/schedules?form=change&name=hostile",
      "#/leadership",
      "#/access",
      "#/processes",
      "#/audit",
      "#/audit?kind=all",
      `#/jobs/${talking}`,
      `#/jobs/${held}`,
      ...failing.map(({ job_id }) => `#/jobs/${job_id}`),
      ...CORPUS.flatMap((text) => [
        `#/jobs?task=${encodeURIComponent(text)}&queue=${encodeURIComponent(text)}&error_code=x`,
        `#/${encodeURIComponent(text)}`,
        `#/jobs/${encodeURIComponent(text)}`,
        `#/jobs/new?task=${encodeURIComponent(text)}&clone=${encodeURIComponent(text)}`,
        `#/schedules?form=change&name=${encodeURIComponent(text)}`,
      ]),
    ];
    // A name that no task or job can have is refused, and the browser tells of the answer.
    watched.page.removeAllListeners("console");
    const violations: string[] = [];
    page.on("console", (message) => {
      if (/Content Security Policy|TrustedScript|trusted type/i.test(message.text()))
        violations.push(message.text());
    });
    for (const place of places) {
      await page.goto(`${node.url}/${place}`);
      await settled(page);
      await assertUnharmed(page, place);
    }
    assert.deepEqual(violations, []);
    assertQuiet(watched);
  });
});

/** Elements that the page never makes by itself. */
async function assertUnharmed(page: Page, where: string): Promise<void> {
  const found = await page.evaluate(() => ({
    hacked: (globalThis as { hacked?: unknown }).hacked ?? null,
    elements: [
      ...document.querySelectorAll("script:not([src]), iframe, img, math, object, embed, body style"),
    ].map((element) => element.outerHTML.slice(0, 100)),
    headings: [...document.querySelectorAll("h1")].length,
    handlers: [...document.querySelectorAll("*")].filter((element) =>
      [...element.attributes].some(
        ({ name, value }) =>
          /^on/i.test(name) ||
          (/^(?:href|src|action|formaction|data)$/i.test(name) && /^\s*javascript:/i.test(value)),
      ),
    ).length,
  }));
  assert.deepEqual(found, { hacked: null, elements: [], headings: 1, handlers: 0 }, where);
}

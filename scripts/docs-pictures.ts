/**
 * npm run docs:pictures
 *
 * The pictures of the README, made from a real demo: the dashboard with the example jobs, and a terminal in which the leader is
 * killed. Run it after the dashboard or the demo has changed, and look at the result.
 */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { TestBrowser } from "../test/browser/chromium.ts";
import { inProof } from "../test/proof/scope.ts";
import { BIN, script } from "../test/support/process.ts";

const PICTURES = join(import.meta.dirname, "../docs/pictures");
const SIZE = { width: 1280, height: 800 };
/** The charts of the dashboard have something to show then. */
const BUSY_MS = 60_000;
/** Until the node that was killed is back. */
const BACK_MS = 9_000;
/** In the recording: before somebody types, and before it begins again. */
const READ_MS = 3_000;
const END_MS = 8_000;

interface Line {
  readonly atMs: number;
  readonly text: string;
}

const FONT = 13;
const CHARACTER = FONT * 0.602;
const LINE = 19;
const MARGIN = 18;
const COLUMNS = 100;

/** What was written to a terminal, each line at its time, again and again. */
function recording(lines: readonly Line[], title: string): string {
  const lastsMs = lines.at(-1)!.atMs + END_MS;
  const width = Math.ceil(COLUMNS * CHARACTER + 2 * MARGIN);
  const height = lines.length * LINE + 2 * MARGIN;
  const escaped = (text: string): string =>
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const drawn = lines.map(({ atMs, text }, n) => {
    const from = ((100 * atMs) / lastsMs).toFixed(2);
    const kind = text.startsWith("$") ? "typed" : "told";
    return `<style>@keyframes l${n} { 0%, ${from}% { opacity: 0 } ${from}%, 100% { opacity: 1 } }</style>
<text class="${kind}" x="${MARGIN}" y="${MARGIN + (n + 1) * LINE - 5}" style="animation: l${n} ${lastsMs.toFixed(0)}ms step-end infinite" xml:space="preserve">${escaped(text)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="${FONT}">
<style>.typed { fill: #7ee787 } .told { fill: #d6dde6 }</style>
<rect width="${width}" height="${height}" rx="8" fill="#161b22"/>
${drawn.join("\n")}
</svg>
`;
}

await inProof(async (scope, say) => {
  mkdirSync(PICTURES, { recursive: true });
  await using demo = script(BIN, ["demo"]);
  const lines: Line[] = [{ atMs: 0, text: "$ npm start" }];
  const begun = performance.now();
  let shift = 1_000;
  let typing = false;
  demo.child.stderr!.on("data", (text: string) => {
    const atMs = performance.now() - begun + shift;
    // Between the first table and the kill there are only the example jobs.
    if (!typing && lines.length > 18) return;
    for (const line of text.trimEnd().split("\n")) lines.push({ atMs, text: line.slice(0, COLUMNS) });
  });
  const [, pid] = await demo.told(/kill -9 (\d+)/);
  const [, url] = await demo.told(/look\s+(http:\S+)/);
  say(`the demo runs at ${url} for ${BUSY_MS / 1_000} s`);
  await sleep(BUSY_MS);

  const browser = await TestBrowser.start(scope);
  const { page } = await browser.open(url, { viewport: SIZE });
  await page.getByRole("main").waitFor();
  await sleep(READ_MS);
  await page.screenshot({ path: join(PICTURES, "dashboard.png") });

  const shownMs = lines.at(-1)!.atMs + READ_MS;
  shift = shownMs - (performance.now() - begun);
  typing = true;
  lines.push({ atMs: shownMs, text: "" }, { atMs: shownMs, text: `$ kill -9 ${pid}` });
  process.kill(Number(pid), "SIGKILL");
  await sleep(BACK_MS);
  const title =
    "a terminal: the leader of three nodes is killed, another one leads, and the first comes back";
  writeFileSync(join(PICTURES, "demo.svg"), recording(lines, title));
  await demo.terminate();
  return ["wrote docs/pictures/dashboard.png and docs/pictures/demo.svg"];
});

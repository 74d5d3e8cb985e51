/**
 * A real Chromium out of npm. It is unpacked once on a machine, started once for a file of tests, and every page of it is watched: what
 * the browser complains of (errors, refusals of the content security policy) fails the test that opened the page.
 */

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { atEnd } from "../support/node-cleanup.ts";
import type { Scope } from "../support/node-cleanup.ts";

const OUTPUT = fileURLToPath(new URL("./output", import.meta.url));

/** Where it was unpacked, with the libraries that it brings for machines that lack them. */
async function unpacked(): Promise<{ executable: string; libraries: string }> {
  const entry = createRequire(import.meta.url).resolve("@sparticuz/chromium");
  const root = dirname(dirname(entry));
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  const home = join(tmpdir(), `baton-chromium-${version}`);
  const found = { executable: join(home, "chromium"), libraries: join(home, "al2023", "lib") };
  if (existsSync(home)) return found;
  // Beside it and then renamed: two runs at the same time never see half of it.
  const fresh = mkdtempSync(`${home}-`);
  const before = process.env["TMPDIR"];
  process.env["TMPDIR"] = fresh;
  try {
    const packed = await import("@sparticuz/chromium");
    await packed.default.executablePath();
    await packed.inflate(join(root, "bin", "al2023.tar.br"));
  } finally {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
  }
  try {
    renameSync(fresh, home);
  } catch {
    rmSync(fresh, { recursive: true }); // another run was faster
  }
  return found;
}

/** As root there is no sandbox. Two processes at least, as everywhere: a shared worker is not the page's. */
const FLAGS = ["--no-sandbox", "--no-zygote", "--disable-gpu", "--font-render-hinting=none"];

async function launch(): Promise<Browser> {
  const { executable, libraries } = await unpacked();
  const start = (env: NodeJS.ProcessEnv): Promise<Browser> =>
    chromium.launch({ executablePath: executable, args: FLAGS, env });
  try {
    return await start(process.env);
  } catch (error) {
    if (!/shared librar/.test(String(error))) throw error;
    return start({ ...process.env, LD_LIBRARY_PATH: libraries });
  }
}

/** Why there can be no browser here; null where there can. */
export function noBrowser(): string | null {
  if (process.platform !== "linux" || process.arch !== "x64") {
    return `the Chromium of the tests is for Linux on x64, and this is ${process.platform} on ${process.arch}`;
  }
  return null;
}

export interface PageOptions extends BrowserContextOptions {
  /** What the browser may complain of, because the test provokes it. */
  readonly expected?: RegExp;
}

/** A page with what the browser said of it. */
export interface WatchedPage {
  readonly page: Page;
  readonly complaints: readonly string[];
}

export class TestBrowser {
  readonly #t: Scope;
  readonly browser: Browser;

  private constructor(t: Scope, browser: Browser) {
    this.#t = t;
    this.browser = browser;
  }

  static async start(t: Scope): Promise<TestBrowser> {
    const browser = await launch();
    atEnd(t, () => browser.close());
    return new TestBrowser(t, browser);
  }

  /** A browser of somebody else: nothing is shared with other contexts. */
  async context(options: BrowserContextOptions = {}): Promise<BrowserContext> {
    // Formats of numbers and times depend on it.
    const context = await this.browser.newContext({
      locale: "en-US",
      timezoneId: "Europe/Berlin",
      viewport: { width: 1280, height: 860 },
      ...options,
    });
    context.setDefaultTimeout(60_000);
    atEnd(this.#t, () => context.close());
    return context;
  }

  async open(url: string, options: PageOptions = {}): Promise<WatchedPage> {
    const { expected, ...rest } = options;
    const page = await (await this.context(rest)).newPage();
    const complaints = watch(page, expected);
    await page.goto(url);
    return { page, complaints };
  }
}

export function watch(page: Page, expected?: RegExp): string[] {
  const complaints: string[] = [];
  const note = (text: string): void => {
    if (!expected?.test(text)) complaints.push(text);
  };
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") {
      note(`${message.text()} (${message.location().url})`);
    }
  });
  page.on("pageerror", (error) => note(error.stack ?? error.message));
  return complaints;
}

export function assertQuiet({ complaints }: WatchedPage): void {
  assert.deepEqual(complaints, []);
}

/** Nothing that keeps people from using it; what was found is told with the elements. */
export async function assertAccessible(page: Page, where: string): Promise<void> {
  assert.deepEqual(await barriersOn(page, where), []);
}

export async function barriersOn(page: Page, where: string): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return grave.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${where}: ${id}: ${node.html.slice(0, 200)}: ${node.failureSummary ?? ""}`),
  );
}

/** Only boxes of their own scroll sideways, never the page. */
export async function assertFits(page: Page, where: string): Promise<void> {
  const { wide, width } = await page.evaluate(() => ({
    wide: document.documentElement.scrollWidth,
    width: document.documentElement.clientWidth,
  }));
  assert.ok(wide <= width, `${where} is ${wide} px wide on a screen of ${width} px`);
}

/** Kept as output of the tests, to be looked at. */
export async function keepScreenshot(page: Page, name: string): Promise<void> {
  await mkdir(OUTPUT, { recursive: true });
  await page.screenshot({ path: join(OUTPUT, `${name}.png`), fullPage: true });
}

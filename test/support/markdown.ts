/** The pages of the repository, read just far enough to compare them with the code: blocks, samples, tables, links, commands. */

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, posix, sep } from "node:path";

const ROOT = join(import.meta.dirname, "../..");
const PAGES = ["*.md", ".github/*.md", "{bench,deploy,docs,examples,template,test}/**/*.md"];

export interface Page {
  /** From the root of the checkout, with slashes. */
  readonly path: string;
  readonly text: string;
}

export interface Block {
  readonly language: string;
  readonly text: string;
  readonly line: number;
  /** Why no test runs it, from `<!-- not run: … -->` in the line above. */
  readonly notRun: string | null;
}

export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** A command of a `console` block, with what it prints. */
export interface ConsoleStep {
  readonly command: string;
  readonly output: string;
}

export function allPages(): Page[] {
  const exclude = ["**/node_modules/**", "**/dist/**", "**/output/**"];
  return globSync(PAGES, { cwd: ROOT, exclude })
    .map((path) => path.split(sep).join("/"))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));
}

export function pageAt(path: string): Page {
  return { path, text: readFileSync(join(ROOT, path), "utf8") };
}

export function blocksOf({ text }: Page): Block[] {
  return [...text.matchAll(/^( *)```(\w*)[^\n]*\n([\s\S]*?)^\1```/gm)].map((match) => ({
    language: match[2]!,
    text: match[3]!,
    line: text.slice(0, match.index).split("\n").length,
    notRun: /<!-- not run: (.+) -->\n$/.exec(text.slice(0, match.index))?.[1] ?? null,
  }));
}

export function consoleSteps({ text }: Block): ConsoleStep[] {
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((step) => {
      const [, command, output] = /^((?:.*\\\n)*.*)\n([\s\S]*)$/.exec(step)!;
      return { command: command!.replaceAll(/\\\n */g, ""), output: output! };
    });
}

export function tablesOf(page: Page): Table[] {
  return [...proseOf(page).matchAll(/(?:^\|.*\|\n)+/gm)].map(([text]) => {
    const [head, , ...rows] = text
      .trimEnd()
      .split("\n")
      .map((line) =>
        line
          .slice(1, -1)
          .split(/(?<!\\)\|/)
          .map((cell) => cell.trim()),
      );
    return { head: head!, rows };
  });
}

/** The table whose head begins with these cells. */
export function tableOf(page: Page, ...head: string[]): Table {
  const found = tablesOf(page).find((table) => head.every((cell, index) => table.head[index] === cell));
  assert.ok(found, `${page.path} has a table with the head ${head.join(", ")}`);
  return found;
}

/** Without its blocks, each line in its place. */
export function proseOf({ text }: Page): string {
  return text.replaceAll(/^( *)```[\s\S]*?^\1```/gm, (block) => block.replaceAll(/[^\n]/g, ""));
}

/** `like this`. */
export function codeSpansOf(page: Page): string[] {
  return codeSpansIn(proseOf(page));
}

export function codeSpansIn(text: string): string[] {
  return [...text.matchAll(/`([^`\n]+)`/g)].map((match) => match[1]!);
}

/** The anchors that a page offers, made of its headings as code hosts do. */
export function anchorsOf(page: Page): Set<string> {
  return new Set(
    [...proseOf(page).matchAll(/^#{1,6} +(.+?) *$/gm)].map((match) =>
      match[1]!
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

/** Links that lead nowhere. `exists` is asked for paths from the root. */
export function brokenLinks(pages: readonly Page[], exists: (path: string) => boolean): string[] {
  const byPath = new Map(pages.map((page) => [page.path, page]));
  return pages.flatMap((page) =>
    [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].flatMap((match) => {
      const link = match[1]!;
      if (/^[a-z]+:/.test(link)) return [];
      const [file, anchor] = link.split("#") as [string, string | undefined];
      const target = file === "" ? page.path : posix.join(posix.dirname(page.path), file);
      const known = byPath.get(target);
      if (!exists(target)) return [`${page.path}: ${link} is not there`];
      if (anchor !== undefined && known && !anchorsOf(known).has(anchor))
        return [`${page.path}: ${link} has no such heading`];
      return [];
    }),
  );
}

/** Command lines that begin with `baton`, out of blocks and code spans, without prompt and runner. */
export function batonCommands(page: Page): string[] {
  const fromBlocks = blocksOf(page)
    .filter(({ language }) => language === "sh" || language === "console")
    .flatMap(({ text }) => text.replaceAll(/\\\n */g, "").split("\n"))
    .map((line) => line.replace(/^\$ /, ""));
  return [...fromBlocks, ...codeSpansOf(page)]
    .map((line) => line.replace(/^(?:npx |node bin\/)/, "").replace(/^baton\.mjs/, "baton"))
    .filter((line) => /^baton(?: |$)/.test(line));
}

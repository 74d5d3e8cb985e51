/** A Markdown page taken apart just far enough to hold it to its word. */

import { posix } from "node:path";

export interface Page {
  /** From the root of the checkout, with slashes. */
  readonly path: string;
  readonly text: string;
}

export interface Block {
  readonly language: string;
  readonly text: string;
  readonly line: number;
}

export function blocksOf({ text }: Page): Block[] {
  return [...text.matchAll(/^( *)```(\w*)[^\n]*\n([\s\S]*?)^\1```/gm)].map((match) => ({
    language: match[2]!,
    text: match[3]!,
    line: text.slice(0, match.index).split("\n").length,
  }));
}

/** Without its blocks, each line in its place. */
export function proseOf({ text }: Page): string {
  return text.replaceAll(/^( *)```[\s\S]*?^\1```/gm, (block) => block.replaceAll(/[^\n]/g, ""));
}

/** `like this`. */
export function codeSpansOf(page: Page): string[] {
  return [...proseOf(page).matchAll(/`([^`\n]+)`/g)].map((match) => match[1]!);
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

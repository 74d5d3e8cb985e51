/**
 * Rules of the tree that concern folders, layers and order: from sources to what breaks them, as in `architecture.ts`.
 * They read tokens and not types, so a rule about names inside a function can be wrong about code that is written to mislead.
 */

import { posix } from "node:path";
import { resolve, type SourceFile } from "./architecture.ts";
import { lineOf, type SourceText } from "./source-text.ts";

interface Parsed extends SourceFile {
  readonly source: SourceText;
}

/** The order in which a node is built: each layer knows only those before it. */
export const LAYERS = ["platform", "backend", "elections", "work", "duties", "entry"] as const;

// ---------------------------------------------------------------- folders

/**
 * Folders beside each other import in one direction only, at every level: `jobs` and `store`, `jobs/run` and `jobs/tasks`.
 * Files that lie in a folder directly are on both sides of its sub-folders (the interface below, the opener above), so
 * they count for the folder and not against its sub-folders.
 */
export function folderCycles(files: readonly Parsed[], root = "src"): string[] {
  const levels = new Map<string, Map<string, Map<string, string>>>();
  for (const { path, text, source } of files) {
    if (!path.startsWith(`${root}/`)) continue;
    for (const { from, at } of source.imports) {
      const [mine, theirs] = [path.split("/"), resolve(path, from).split("/")];
      const shared = mine.findIndex((part, index) => part !== theirs[index]);
      if (shared < 1 || shared >= mine.length - 1 || shared >= theirs.length - 1) continue;
      const graph = entry(
        levels,
        mine.slice(0, shared).join("/"),
        () => new Map<string, Map<string, string>>(),
      );
      const edges = entry(graph, mine[shared]!, () => new Map<string, string>());
      if (!edges.has(theirs[shared]!))
        edges.set(theirs[shared]!, `${path}:${lineOf(text, at)} imports ${from}`);
    }
  }
  return [...levels].flatMap(([folder, graph]) =>
    [...graph].flatMap(([from, edges]) =>
      [...edges]
        .filter(([to]) => reaches(graph, to, from))
        .map(([to, where]) => `${where}, so that ${folder}/${from} and ${folder}/${to} need each other`),
    ),
  );
}

function reaches(
  graph: ReadonlyMap<string, ReadonlyMap<string, string>>,
  from: string,
  wanted: string,
): boolean {
  const seen = new Set<string>();
  const open = [from];
  for (let here = open.pop(); here !== undefined; here = open.pop()) {
    if (here === wanted) return true;
    if (seen.has(here)) continue;
    seen.add(here);
    open.push(...(graph.get(here)?.keys() ?? []));
  }
  return false;
}

export function foldersAreSmall(files: readonly SourceFile[], filesMax: number): string[] {
  const counts = new Map<string, number>();
  for (const { path } of files) {
    const folder = posix.dirname(path);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts]
    .filter(([, count]) => count > filesMax)
    .map(([folder, count]) => `${folder} has ${count} files, more than ${filesMax}; group them by subject`);
}

/** What a file of some length does, and what it does not do, stands at its top. */
export function longFilesExplainThemselves(files: readonly SourceFile[], linesMax: number): string[] {
  return files
    .filter(({ text }) => text.trimEnd().split("\n").length > linesMax)
    .filter(({ text }) => !/^(?:#![^\n]*\n)?\s*(?:\/\*|\/\/)/.test(text))
    .map(({ path }) => `${path} has more than ${linesMax} lines and does not begin with a comment`);
}

/** A file is named for its subject; `parts` is a kind. */
export function noPartsFiles(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => /(?:^|[/-])parts\.ts$/.test(path))
    .map(({ path }) => `${path} is named for a kind; name it for its subject`);
}

// ---------------------------------------------------------------- layers

/** The index of the layer of `src/node/work-push.ts`; -1 for files of the folder that are of no layer. */
function layerOf(path: string, folder: string): number {
  if (posix.dirname(path) !== folder) return -1;
  return LAYERS.findIndex((layer) => new RegExp(`^${layer}(?:-.*)?\\.ts$`).test(posix.basename(path)));
}

/** A layer knows none that comes after it, also not by way of a file that is of no layer. */
export function layersInOrder(files: readonly Parsed[], folder = "src/node"): string[] {
  const inside = new Map(
    files.filter(({ path }) => path.startsWith(`${folder}/`)).map((file) => [file.path, file]),
  );
  const missing = LAYERS.filter(
    (_, index) => ![...inside.keys()].some((path) => layerOf(path, folder) === index),
  );
  const found: string[] = missing.map((layer) => `${folder} has no layer ${layer}`);
  for (const [path, { text, source }] of inside) {
    const layer = layerOf(path, folder);
    if (layer < 0) continue;
    for (const { from, at } of source.imports) {
      const later = [...within(inside, resolve(path, from))].find((each) => layerOf(each, folder) > layer);
      if (later !== undefined) {
        const way = resolve(path, from) === later ? "" : `, which leads to ${posix.basename(later)}`;
        found.push(
          `${path}:${lineOf(text, at)} imports ${from}${way}: ${LAYERS[layer]} comes before ${LAYERS[layerOf(later, folder)]}`,
        );
      }
    }
  }
  return found;
}

/** The file and all that it leads to among these. */
function within(files: ReadonlyMap<string, Parsed>, start: string, seen = new Set<string>()): Set<string> {
  const file = files.get(start);
  if (!file || seen.has(start)) return seen;
  seen.add(start);
  for (const { from } of file.source.imports) within(files, resolve(start, from), seen);
  return seen;
}

// ---------------------------------------------------------------- forward references

/**
 * A `const` of a function that is used further up in it. Such a use is inside a closure, else it would fail: a thunk that
 * stands in for what is not built yet. Also options named `later`.
 */
export function forwardReferences(files: readonly Parsed[], folders: readonly string[]): string[] {
  return files
    .filter(({ path }) => folders.some((folder) => path.startsWith(`${folder}/`)))
    .flatMap(({ path, text, source }) => {
      const blocks = blocksOf(source.code);
      const thunks = declarations(source.code).flatMap(({ name, at }) => {
        const block = innermost(blocks, at);
        if (!block) return [];
        const use = uses(source.code, name, block.from, at).find(
          (each) => !shadowed(source.code, blocks, block, name, each),
        );
        return use === undefined
          ? []
          : [{ at: use, what: `uses ${name}, which is made on line ${lineOf(text, at)}` }];
      });
      const later = [...source.code.matchAll(/(?:\.|\breadonly\s+|[{,(]\s*)later\b/g)].map((match) => ({
        at: match.index + match[0].length - 5,
        what: "has an option `later`",
      }));
      return [...thunks, ...later].map(({ at, what }) => `${path}:${lineOf(text, at)} ${what}`);
    });
}

interface Block {
  readonly from: number;
  readonly to: number;
}

function blocksOf(code: string): Block[] {
  const [open, blocks]: [number[], Block[]] = [[], []];
  for (const { 0: brace, index } of code.matchAll(/[{}]/g)) {
    if (brace === "{") open.push(index);
    else if (open.length > 0) blocks.push({ from: open.pop()!, to: index });
  }
  return blocks;
}

function innermost(blocks: readonly Block[], at: number): Block | undefined {
  return blocks.filter(({ from, to }) => from < at && at < to).sort((a, b) => b.from - a.from)[0];
}

/** `const a`, `const { a, b: c }` and `const [a, b]`, with the place of the word `const`. */
function declarations(code: string): { name: string; at: number }[] {
  return [...code.matchAll(/\bconst\s+(\w+|\{[^{}=]*\}|\[[^[\]=]*\])\s*(?::[^=;]+)?=(?!=)/g)].flatMap(
    (match) => {
      const target = match[1]!;
      const names = /^\w/.test(target)
        ? [target]
        : target
            .slice(1, -1)
            .split(",")
            .map((each) => /(\w+)\s*$/.exec(each)?.[1] ?? "");
      return names.filter((name) => name !== "").map((name) => ({ name, at: match.index }));
    },
  );
}

/** Where a name is used: not as a member, a key, a method of an object or the name of a type. */
function uses(code: string, name: string, from: number, to: number): number[] {
  return [...code.slice(from, to).matchAll(new RegExp(`(?<![\\w.#$])${name}\\b`, "g"))]
    .map((match) => from + match.index)
    .filter((at) => {
      const [before, after] = [code.slice(0, at).trimEnd(), code.slice(at + name.length)];
      if (/^\s*\??:/.test(after) && !before.endsWith("?")) return false;
      if (/(?:^|\W)(?:const|let|function|readonly|typeof|get|set|class|type|interface)$/.test(before))
        return false;
      return !(/[{,;}]$|\basync$/.test(before) && /^\s*(?:<[^>]*>)?\([^()]*\)\s*(?::[^{=;]+)?\{/.test(after));
    });
}

/** Whether the use means another thing of the same name: a parameter, or what a block in between declares. */
function shadowed(code: string, blocks: readonly Block[], outer: Block, name: string, at: number): boolean {
  const word = new RegExp(`\\b${name}\\b`);
  const own = new RegExp(`\\b(?:const|let)\\s+(?:[{[][^=;]*)?\\b${name}\\b`);
  const loop = new RegExp(`\\bfor\\s*(?:await\\s*)?\\(\\s*(?:const|let)\\s[^;{}]*\\b${name}\\b[^;{}]*$`);
  if (loop.test(code.slice(outer.from, at))) return true;
  const around = ({ from, to }: Block): boolean => from > outer.from && from <= at && at < to;
  return (
    blocks
      .filter(around)
      .some(
        ({ from, to }) => own.test(code.slice(from, to)) || word.test(parametersBefore(code, from).text),
      ) || arrowsOf(code, outer).some((arrow) => around(arrow) && word.test(arrow.parameters))
  );
}

/** Arrow functions, from their parameters to the end of their bodies. */
function arrowsOf(code: string, { from, to }: Block): (Block & { readonly parameters: string })[] {
  return [...code.slice(from, to).matchAll(/=>/g)].map((match) => {
    const arrow = from + match.index;
    const single = /(\w+)\s*$/.exec(code.slice(Math.max(0, arrow - 100), arrow));
    const list = parametersBefore(code, arrow + 2);
    const [parameters, start] =
      list.from >= 0 ? [list.text, list.from] : [single?.[1] ?? "", arrow - (single?.[0].length ?? 0)];
    let depth = 0;
    let end = arrow + 2;
    for (; end < to; end++) {
      if ("([{".includes(code[end]!)) depth++;
      else if (")]}".includes(code[end]!) && --depth < 0) break;
      else if (depth === 0 && (code[end] === "," || code[end] === ";")) break;
    }
    return { from: start, to: end, parameters };
  });
}

/** The parameters of the function whose body, or arrow, ends or begins here; `from` is -1 if there are none. */
function parametersBefore(code: string, body: number): { readonly text: string; readonly from: number } {
  const start = Math.max(0, body - 1_000);
  const head = code
    .slice(start, body)
    .replace(/\s*(?:=>)?\s*$/, "")
    .replace(/\)\s*:[^(){};=]*$/, ")");
  let depth = 0;
  for (let at = head.endsWith(")") ? head.length - 1 : -1; at >= 0; at--) {
    if (head[at] === ")") depth++;
    else if (head[at] === "(" && --depth === 0) return { text: head.slice(at + 1, -1), from: start + at };
  }
  return { text: "", from: -1 };
}

// ---------------------------------------------------------------- shared

function entry<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

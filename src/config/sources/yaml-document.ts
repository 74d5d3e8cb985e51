/** A configuration file, YAML or JSON (which is also YAML), as entries with their positions. */

import type * as Yaml from "yaml";
import type { Document, LineCounter, YAMLMap } from "yaml";
import { loadPackage } from "../../platform/load-package.ts";
import type { Advice, Found, SourceContent } from "../mistake.ts";

const yaml = (): typeof Yaml => loadPackage("yaml");

export interface Entry {
  readonly key: string;
  readonly at: number;
  /** Where the value stands; where the key does if there is none. */
  readonly valueAt: number;
  readonly value: unknown;
  /** As it was written, of a value that is neither a list nor a map: `0123` stays that. */
  readonly text: string | null;
  readonly entries: readonly Entry[] | null;
}

export class YamlDocument implements SourceContent {
  readonly found: Found[] = [];
  readonly mistakes: string[] = [];
  readonly warnings: Advice[] = [];
  readonly #file: string;
  readonly #lines: LineCounter = new (yaml().LineCounter)();
  readonly #document: Document;

  constructor(file: string, text: string) {
    this.#file = file;
    this.#document = yaml().parseDocument(text, { lineCounter: this.#lines, prettyErrors: false });
    for (const error of this.#document.errors) this.mistake(error.pos[0], error.message.split("\n", 1)[0]!);
  }

  /** The entries at the top; null if there are none, and then the mistakes say why, if it is one. */
  top(): readonly Entry[] | null {
    if (this.mistakes.length > 0) return null;
    const { isMap, isScalar } = yaml();
    const root = this.#document.contents;
    if (root === null || (isScalar(root) && root.value === null)) return null;
    if (isMap(root)) return this.#entriesOf(root);
    this.mistake(root.range?.[0] ?? 0, "a configuration file is a map of settings, such as `name: node-1`");
    return null;
  }

  take(path: string, value: unknown, at: number): void {
    const { line, col } = this.#lines.linePos(at);
    this.found.push({ path, value, source: { from: "file", file: this.#file, line, column: col } });
  }

  mistake(at: number, message: string): void {
    const { line, col } = this.#lines.linePos(at);
    this.mistakes.push(`${this.#file}:${line}:${col}: ${message}`);
  }

  warn(message: string): void {
    this.warnings.push({ message: `${this.#file}: ${message}`, remedy: null });
  }

  #entriesOf(map: YAMLMap): Entry[] {
    const { isAlias, isMap, isNode, isScalar } = yaml();
    return map.items.map((pair) => {
      const at = offsetOf(pair.key) ?? 0;
      const inner = isAlias(pair.value) ? pair.value.resolve(this.#document) : pair.value;
      return {
        key: isScalar(pair.key) ? String(pair.key.value) : String(pair.key),
        at,
        valueAt: offsetOf(pair.value) ?? at,
        value: isNode(pair.value) ? pair.value.toJS(this.#document) : pair.value,
        text: isScalar(inner) ? textOf(inner.value, inner.source) : null,
        entries: isMap(inner) ? this.#entriesOf(inner) : null,
      };
    });
  }
}

function textOf(value: unknown, source: string | undefined): string | null {
  if (value === null || value === undefined) return null;
  return typeof value === "string" ? value : (source ?? String(value));
}

function offsetOf(node: unknown): number | undefined {
  return yaml().isNode(node) ? node.range?.[0] : undefined;
}

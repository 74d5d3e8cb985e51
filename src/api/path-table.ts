import { BatonError } from "../core/errors.ts";

interface Row {
  readonly method: string;
  readonly path: string;
}

interface Entry<R> {
  readonly row: R;
  /** Null for a placeholder. */
  readonly fixed: readonly (string | null)[];
  readonly names: readonly string[];
}

/** Finds the row of a method and a path with placeholders such as `/jobs/{id}`. A fixed step goes before a placeholder. */
export class PathTable<R extends Row> {
  readonly #entries = new Map<string, Entry<R>[]>();

  constructor(rows: readonly R[]) {
    for (const row of rows) {
      const steps = row.path.split("/");
      const names = steps.filter(isPlaceholder).map((step) => step.slice(1, -1));
      const entry = { row, fixed: steps.map((step) => (isPlaceholder(step) ? null : step)), names };
      const key = keyOf(row.method, steps.length);
      const entries = this.#entries.get(key) ?? [];
      entries.push(entry);
      entries.sort((a, b) => a.names.length - b.names.length);
      this.#entries.set(key, entries);
    }
  }

  find(method: string, path: string): { readonly row: R; readonly params: Record<string, string> } | null {
    const steps = path.split("/");
    for (const { row, fixed, names } of this.#entries.get(keyOf(method, steps.length)) ?? []) {
      if (!fixed.every((step, index) => step === null || step === steps[index])) continue;
      const params: Record<string, string> = {};
      let name = 0;
      for (let index = 0; index < fixed.length; index++) {
        if (fixed[index] === null) params[names[name++]!] = decode(steps[index]!);
      }
      return { row, params };
    }
    return null;
  }
}

function keyOf(method: string, steps: number): string {
  return `${method} ${steps}`;
}

function isPlaceholder(step: string): boolean {
  return step.startsWith("{");
}

function decode(step: string): string {
  if (!step.includes("%")) return step;
  try {
    return decodeURIComponent(step);
  } catch {
    throw new BatonError("BAD_REQUEST", "the path is not a valid URL; percent-encode special characters");
  }
}

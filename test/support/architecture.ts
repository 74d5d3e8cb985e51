/** The rules of the tree, as functions from sources to what breaks them. */

import { posix } from "node:path";
import { lineOf, readSource, type SourceText } from "./source-text.ts";

export interface SourceFile {
  /** From the root of the checkout, with slashes: `src/core/ids.ts`. */
  readonly path: string;
  readonly text: string;
}

/** A file that may break a rule. The reason is for the reader; an exception that nobody needs is itself a mistake. */
export type Exceptions = Readonly<Record<string, string>>;

interface Parsed extends SourceFile {
  readonly source: SourceText;
}

const PORTS = ["store", "coordination", "channels", "transport"] as const;

export class Sources {
  readonly files: readonly Parsed[];

  constructor(files: readonly SourceFile[]) {
    this.files = files.map((file) => ({ ...file, source: readSource(file.text) }));
  }

  /** `src/core` is pure, so it may know nothing but itself, not even the runtime. */
  coreImportsOnlyCore(): string[] {
    return this.#imports("src/core/", (target) => target.startsWith("src/core/"));
  }

  platformImportsOnlyCoreAndItself(): string[] {
    return this.#imports(
      "src/platform/",
      (target) => !target.startsWith("src/") || /^src\/(?:core|platform)\//.test(target),
    );
  }

  /** Two keepers that know each other can no longer be swapped one at a time. */
  keepersImportNoOtherKeeper(): string[] {
    return this.#imports("src/", (target, from) => {
      const [keeper, other] = [keeperOf(from), keeperOf(target)];
      return keeper === null || other === null || keeper === other;
    });
  }

  /** Whatever is above a port knows the port: only the port's own open.ts names its keepers. */
  onlyOpenKnowsKeepers(): string[] {
    return this.#imports("src/", (target, from) => {
      const keeper = keeperOf(target);
      return keeper === null || keeperOf(from) === keeper || from === `src/${keeper.split("/")[0]}/open.ts`;
    });
  }

  /** Code above an interface asks for a named value (`guarantees.shared`), never for the name of the backend in use. */
  nobodyAsksForABackend(exceptions: Exceptions): string[] {
    const above = new Sources(
      this.files.filter(
        ({ path }) => !/^src\/(?:store|channels|coordination|transport|platform|config)\//.test(path),
      ),
    );
    return above.#forbid("asks for a backend's name", BACKEND_QUESTIONS, null, null, exceptions);
  }

  sourcesImportOnlySources(): string[] {
    return this.#imports("src/", (target) => isPackage(target) || /^(?:node:|src\/)/.test(target));
  }

  /** A package that is only a devDependency would be missing where Baton is installed. */
  packagesAreDeclared(declared: ReadonlySet<string>): string[] {
    return this.#imports("src/", (target) => !isPackage(target) || declared.has(packageName(target)));
  }

  nobodyReadsClocks(exceptions: Exceptions): string[] {
    return this.#forbid("reads a clock", CLOCKS, CLOCK_MODULES, SQL_CLOCKS, exceptions);
  }

  nobodyMakesChance(exceptions: Exceptions): string[] {
    return this.#forbid("makes its own randomness", CHANCE, null, SQL_CHANCE, exceptions);
  }

  filesAreShort(
    linesMax: number,
    exceptions: Readonly<Record<string, { max: number; reason: string }>>,
  ): string[] {
    const found = this.files.flatMap(({ path, text }) => {
      const lines = text.trimEnd().split("\n").length;
      const max = exceptions[path]?.max ?? linesMax;
      return lines > max ? [`${path} has ${lines} lines, more than ${max}; split it by subject`] : [];
    });
    const needless = Object.keys(exceptions).filter((path) => {
      const file = this.files.find((each) => each.path === path);
      return !file || file.text.trimEnd().split("\n").length <= linesMax;
    });
    return [...found, ...needless.map((path) => `the exception for ${path} is not needed any more`)];
  }

  /** A file that no entry point leads to is dead, unless its reason is told. */
  everyFileIsReached(entries: readonly string[], exceptions: Exceptions): string[] {
    const byPath = new Map(this.files.map((file) => [file.path, file]));
    const reached = new Set<string>();
    const spread = (path: string): void => {
      const file = byPath.get(path);
      if (!file || reached.has(path)) return;
      reached.add(path);
      for (const { from } of file.source.imports) spread(resolve(path, from));
    };
    for (const entry of [...entries, ...Object.keys(exceptions)]) spread(entry);
    const dead = this.files
      .filter(({ path }) => !reached.has(path))
      .map(({ path }) => `nothing leads to ${path}`);
    reached.clear();
    for (const entry of entries) spread(entry);
    const needless = Object.keys(exceptions).filter((path) => reached.has(path) || !byPath.has(path));
    return [...dead, ...needless.map((path) => `the exception for ${path} is not needed any more`)];
  }

  #imports(within: string, allowed: (target: string, from: string) => boolean): string[] {
    return this.files
      .filter(({ path }) => path.startsWith(within))
      .flatMap(({ path, text, source }) =>
        source.imports
          .filter(({ from }) => !allowed(resolve(path, from), path))
          .map(({ at, from }) => `${path}:${lineOf(text, at)} imports ${from}`),
      );
  }

  #forbid(
    what: string,
    inCode: RegExp,
    modules: RegExp | null,
    inSql: RegExp | null,
    exceptions: Exceptions,
  ): string[] {
    const needed = new Set<string>();
    const found = this.files.flatMap(({ path, text, source }) => {
      const places = [
        ...[...source.code.matchAll(inCode)].map((match) => ({ at: match.index, word: match[0] })),
        ...source.imports
          .filter(({ from }) => modules?.test(from))
          .map(({ at, from }) => ({ at, word: from })),
        ...source.texts.flatMap(({ at, text: sql }) => {
          const word = inSql?.exec(sql)?.[0];
          return word === undefined ? [] : [{ at, word }];
        }),
      ];
      if (places.length > 0 && exceptions[path] !== undefined) {
        needed.add(path);
        return [];
      }
      return places.map(({ at, word }) => `${path}:${lineOf(text, at)} ${what}: ${word.trim()}`);
    });
    const needless = Object.keys(exceptions).filter((path) => !needed.has(path));
    return [...found, ...needless.map((path) => `the exception for ${path} is not needed any more`)];
  }
}

/** `globalThis.setTimeout` is found too; `socket.setTimeout` is a method of something else. */
const CLOCKS =
  /\bDate\.now\b|\bnew Date(?:\(\s*\)|(?!\s*\(|\w))|(?<![\w.]|new )Date\(|\bperformance\.(?:now|timeOrigin|mark)\b|\bprocess\.(?:hrtime|uptime)\b|(?:(?<![\w.$#])|\bglobalThis\.)(?:setTimeout|setInterval)\b(?!\s*[?:])|\bAbortSignal\.timeout\b|\bTemporal\.Now\b/g;
const CLOCK_MODULES = /^(?:node:)?(?:timers(?:\/promises)?|perf_hooks)$/;
const SQL_CLOCKS =
  /\bCURRENT_(?:TIMESTAMP|DATE|TIME)\b|\b(?:datetime|date|time|julianday|unixepoch|strftime)\s*\([^)]*'now'|\bunixepoch\s*\(\s*\)/i;

/** A comparison of what holds a backend's name, whatever it is compared with, and the question for a kind of URL. */
const BACKEND_QUESTIONS =
  /(?:\bguarantees\.name|\b(?:channels|coordination|store|fabric)\.(?:kind|coordination|channels)|\b(?:settings|cluster)\.(?:store|coordination))\s*[!=]==|\bisPostgresUrl\s*\(/g;

const CHANCE = /\bMath\.random\b|\brandom(?:UUID(?:v7)?|Bytes|Int|Fill(?:Sync)?)\b|\bgetRandomValues\b/g;
const SQL_CHANCE = /\bSELECT\b[^;]*\brandom(?:blob)?\s*\(/i;

/** `store/sqlite` for a file of that keeper; null for the port itself and everything else. */
export function keeperOf(path: string): string | null {
  const [root, port, ...rest] = path.split("/");
  if (root !== "src" || !PORTS.some((each) => each === port)) return null;
  if (rest.length > 1) return `${port}/${rest[0]}`;
  // A keeper of the transport is so small that it is a file, or two: http.ts and http-call.ts.
  const [name] = /^[a-z]+/.exec(rest[0] ?? "") ?? [];
  return port === "transport" && (name === "http" || name === "memory") ? `${port}/${name}` : null;
}

/** Relative imports as a path from the root, packages and builtins as they are written. */
function resolve(from: string, specifier: string): string {
  return specifier.startsWith(".") ? posix.normalize(posix.join(posix.dirname(from), specifier)) : specifier;
}

function isPackage(target: string): boolean {
  return !target.startsWith("node:") && !/\.[cm]?[jt]s(?:on)?$/.test(target);
}

function packageName(target: string): string {
  return target.split("/", target.startsWith("@") ? 2 : 1).join("/");
}

// ---------------------------------------------------------------- any text file

/** A machine's own paths and registries end up in a repository by accident, and break it everywhere else. */
export function machineTraces(files: readonly SourceFile[], checkout: string): string[] {
  const places = [
    /(?<![\w.~])\/(?:home|Users|root)\/\w[\w.-]*/,
    /\b[A-Z]:\\+Users\\+\w+/,
    /\bregistry\.[\w-]+\.\w{2,}/,
    /"resolved":\s*"(?:https?|file):/,
  ];
  return files.flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, index) => {
      const found = places.map((place) => place.exec(line)?.[0]).find((match) => match !== undefined);
      const own = line
        .split(checkout)
        .slice(1)
        .some((rest) => !/^[\w-]/.test(rest));
      const trace = found ?? (own ? checkout : undefined);
      return trace === undefined ? [] : [`${path}:${index + 1} names ${trace}`];
    }),
  );
}

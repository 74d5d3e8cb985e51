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

/** Folders of an interface; their sub-folders are its backends. */
const PORTS = ["store", "leadership", "channels", "transport"] as const;
const NOT_BACKENDS = new Set(["transport/signing"]);
/** The peers are a backend of leadership that lies with what else they do. */
const PEERS = "peers/bully";

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

  /** Two backends that know each other can no longer be swapped one at a time. */
  backendsImportNoOtherBackend(): string[] {
    return this.#imports("src/", (target, from) => {
      const [backend, other] = [backendOf(from), backendOf(target)];
      return backend === null || other === null || backend === other;
    });
  }

  /** What is above an interface knows the interface: only the file that opens it names its backends. */
  onlyOpenKnowsBackends(): string[] {
    return this.#imports("src/", (target, from) => {
      const backend = backendOf(target);
      if (backend === null || backendOf(from) === backend) return true;
      return opens(from, backend.split("/")[0]!);
    });
  }

  /** Code above an interface asks for a named value (`guarantees.shared`), never for the name of the backend in use. */
  nobodyAsksForABackend(exceptions: Exceptions): string[] {
    const above = new Sources(
      this.files.filter(({ path }) => !/^src\/(?:store|channels|transport|platform|config)\//.test(path)),
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

  /** Code decides by codes. A text for people may be reworded at any time, so no code path depends on one. */
  noCodeReadsMessages(exceptions: Exceptions): string[] {
    const found = this.files.flatMap(({ path, text, source }) =>
      messageReads(text, source).map((at) => ({
        path,
        place: `${path}:${lineOf(text, at)} decides by the text of a message`,
      })),
    );
    const needless = Object.keys(exceptions).filter((path) => !found.some((each) => each.path === path));
    return [
      ...found.filter(({ path }) => exceptions[path] === undefined).map(({ place }) => place),
      ...needless.map((path) => `the exception for ${path} is not needed any more`),
    ];
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

/** A value that holds a text for people, by its name. */
const MESSAGE = String.raw`\b(?:message|reason|stderr)\b[)\]!?]*`;
const MESSAGE_READS = new RegExp(
  String.raw`${MESSAGE}\.(?:startsWith|endsWith|includes|indexOf|match|matchAll|search|replace|replaceAll)\(` +
    String.raw`|\.(?:test|exec)\([^;\n]*?${MESSAGE}\)` +
    String.raw`|\.slice\(\s*["'\x60][^"'\x60]*["'\x60]\.length`,
  "g",
);
/** Two words in a row: no code, key or name looks like it. */
const PROSE = /[A-Za-z]{2,} [A-Za-z]{2,}/;
const BEFORE_COMPARED = /(?:[!=]==|\.(?:startsWith|endsWith|includes|indexOf)\()\s*["'`]$/;
const USED_PATTERNS = /\/( +)\/[a-z]*\s*\.(?:test|exec)\(|\.(?:match|matchAll|search|split)\(\s*\/( +)\//g;

/** Where code tests, cuts or searches a text for people. */
function messageReads(text: string, { code, texts }: SourceText): number[] {
  const compared = texts.filter(
    ({ at, text: words }) => PROSE.test(words) && BEFORE_COMPARED.test(code.slice(Math.max(0, at - 40), at)),
  );
  const keys = texts.filter(({ at, text: words }) => {
    const isKey = /[{,]\s*["']$/.test(code.slice(Math.max(0, at - 40), at));
    return PROSE.test(words) && isKey && /^["']:/.test(code.slice(at + words.length));
  });
  const patterns = [...code.matchAll(USED_PATTERNS)].filter(({ index, 0: found }) =>
    PROSE.test(text.slice(index, index + found.length)),
  );
  const named = [...code.matchAll(MESSAGE_READS)];
  const places = [...compared, ...keys].map(({ at }) => at);
  return [...places, ...[...patterns, ...named].map(({ index }) => index)].sort((a, b) => a - b);
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

/** `store/sqlite` for a file of that backend; null for the interface itself and everything else. */
export function backendOf(path: string): string | null {
  const [root, port, ...rest] = path.split("/");
  if (root !== "src") return null;
  if (path.startsWith(`src/${PEERS}/`)) return PEERS;
  if (!PORTS.some((each) => each === port)) return null;
  const folder = `${port}/${rest[0]}`;
  return rest.length < 2 || NOT_BACKENDS.has(folder) ? null : folder;
}

/** `src/store/open-store.ts` for the store. Peers are opened with the locks of a node's own. */
function opens(path: string, port: string): boolean {
  return /^src\/(\w+)\/open(?:-[\w-]+)?\.ts$/.exec(path)?.[1] === port || path === "src/peers/open-peers.ts";
}

/** Relative imports as a path from the root, packages and builtins as they are written. */
export function resolve(from: string, specifier: string): string {
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

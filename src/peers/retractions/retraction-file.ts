/** The file of retractions, one JSON line each, on disk before `add` resolves. */

import { mkdir, open, readFile, rename, writeFile, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { isUuid, NODE_NAME, type NodeName } from "../../core/ids.ts";
import { Batcher } from "../../platform/batcher.ts";
import type { Log } from "../../platform/log.ts";
import { Lifecycle } from "../../platform/service.ts";

/** Jobs that a node may have stored although another one got them in the end. */
export interface Retraction {
  readonly node: NodeName;
  /** Of the first of them; the others count on from it. */
  readonly first: string;
  readonly jobs: number;
  /** Wall time. */
  readonly at: number;
}

type Line = { readonly add: Retraction } | { readonly done: string };

/** As many as one request may submit. */
const JOBS_MAX = 10_000;
/** Rewritten when so many lines say nothing any more. */
const DEAD_LINES_MAX = 1_000;

export class RetractionFile extends Lifecycle {
  readonly #file: string;
  readonly #log: Log;
  readonly #pending = new Map<string, Retraction>();
  readonly #lines: Batcher<Line, null>;
  #handle: FileHandle | null = null;
  #deadLines = 0;

  constructor(options: { readonly file: string; readonly log: Log }) {
    super();
    this.#file = options.file;
    this.#log = options.log;
    this.#lines = new Batcher({ flush: (lines) => this.#append(lines) });
  }

  get size(): number {
    return this.#pending.size;
  }

  pending(): readonly Retraction[] {
    return [...this.#pending.values()];
  }

  /** Rejects when it is not surely on disk. */
  async add(retraction: Retraction): Promise<void> {
    await this.#lines.add({ add: retraction });
    this.#pending.set(retraction.first, retraction);
  }

  /** Not urgent: one that is done twice finds nothing the second time. */
  async done(first: string): Promise<void> {
    if (!this.#pending.delete(first)) return;
    this.#deadLines += 2;
    await this.#lines.add({ done: first });
  }

  protected override async onStart(): Promise<void> {
    this.#pending.clear();
    await mkdir(dirname(this.#file), { recursive: true });
    for (const line of await this.#read()) {
      if ("add" in line) this.#pending.set(line.add.first, line.add);
      else this.#pending.delete(line.done);
    }
    await this.#rewrite();
  }

  protected override async onStop(): Promise<void> {
    await this.#lines.idle();
    await this.#handle?.close();
    this.#handle = null;
  }

  async #read(): Promise<Line[]> {
    const text = await readFile(this.#file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "";
      throw error;
    });
    const lines: Line[] = [];
    let bad = 0;
    for (const each of text.split("\n")) {
      if (each === "") continue;
      const line = parse(each);
      if (line) lines.push(line);
      else bad++;
    }
    // The last line of a process that died while it wrote it was not acknowledged.
    if (bad > 0) this.#log.warn({ file: this.#file, lines: bad }, "lines of retractions could not be read");
    return lines;
  }

  async #append(lines: readonly Line[]): Promise<readonly null[]> {
    if (!this.#handle) throw new Error("the file of retractions is not open");
    // On a new line: the one before may be a half that could not be written to its end.
    await this.#handle.appendFile(`\n${lines.map((line) => JSON.stringify(line)).join("\n")}\n`);
    await this.#handle.datasync();
    if (this.#deadLines >= DEAD_LINES_MAX) {
      await this.#rewrite(lines).catch(async (error: unknown) => {
        this.#log.warn({ file: this.#file, err: error }, "the file of retractions could not be rewritten");
        this.#handle ??= await open(this.#file, "a", 0o600);
      });
    }
    return lines.map(() => null);
  }

  /** With what is being added now, which is not among the pending ones yet. */
  async #rewrite(adding: readonly Line[] = []): Promise<void> {
    const kept = [...this.pending().map((add): Line => ({ add })), ...adding.filter((line) => "add" in line)];
    const fresh = `${this.#file}.new`;
    const text = kept.map((line) => `${JSON.stringify(line)}\n`).join("");
    await writeFile(fresh, text, { flush: true, mode: 0o600 });
    // Windows renames nothing onto a file that is open.
    await this.#handle?.close();
    this.#handle = null;
    await rename(fresh, this.#file);
    await syncDirectory(dirname(this.#file));
    this.#handle = await open(this.#file, "a", 0o600);
    this.#deadLines = 0;
  }
}

/** A rename is on disk with its directory. Windows has no such call, and needs none. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

function parse(text: string): Line | null {
  try {
    const line = JSON.parse(text) as { add?: Partial<Retraction>; done?: unknown };
    if (typeof line.done === "string") return { done: line.done };
    return isRetraction(line.add) ? { add: line.add } : null;
  } catch {
    return null;
  }
}

export function isRetraction(value: unknown): value is Retraction {
  const { node, first, jobs, at } = (value ?? {}) as Record<keyof Retraction, unknown>;
  return (
    typeof node === "string" &&
    NODE_NAME.test(node) &&
    typeof first === "string" &&
    isUuid(first) &&
    Number.isSafeInteger(jobs) &&
    (jobs as number) > 0 &&
    (jobs as number) <= JOBS_MAX &&
    typeof at === "number"
  );
}

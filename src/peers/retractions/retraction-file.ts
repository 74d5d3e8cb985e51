/**
 * The file of retractions, one JSON line each: those that this node has to deliver, and the jobs of this node that no
 * retraction may remove any more. A line is on disk before `add` or `confirm` resolves.
 */

import { z } from "zod";
import { Batcher } from "../../platform/batcher.ts";
import type { JobId } from "../../core/ids.ts";
import type { AppendFile } from "../../platform/files.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle } from "../../platform/service.ts";
import { retraction, type Retraction } from "../rpc/peer-routes.ts";

const line = z.union([
  z.object({ add: retraction }),
  z.object({ done: z.string() }),
  z.object({ confirmed: z.string().transform((id) => id as JobId), at: z.number() }),
]);
type Line = z.output<typeof line>;

/** A node that was away for longer keeps its jobs. */
export const KEPT_MS = 30 * 86_400_000;
/** Rewritten when so many lines were appended to those that it was written with, and as many again as those. */
const APPENDED_MAX = 1_000;

export class RetractionFile extends Lifecycle {
  readonly #platform: Pick<Platform, "clock" | "files" | "log">;
  readonly #file: string;
  readonly #pending = new Map<string, Retraction>();
  readonly #confirmed = new Map<JobId, number>();
  readonly #lines: Batcher<Line, void>;
  #handle: AppendFile | null = null;
  #appendable = 0;

  constructor(platform: Pick<Platform, "clock" | "files" | "log">, file: string) {
    super();
    this.#platform = platform;
    this.#file = file;
    this.#lines = new Batcher({ clock: platform.clock, flush: (lines) => this.#append(lines) });
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
    if (this.#pending.delete(first)) await this.#lines.add({ done: first });
  }

  /** Rejects when it is not surely on disk. */
  async confirm(id: JobId): Promise<void> {
    if (this.#confirmed.has(id)) return;
    const at = this.#platform.clock.now();
    await this.#lines.add({ confirmed: id, at });
    this.#confirmed.set(id, at);
  }

  confirmed(id: JobId): boolean {
    return this.#confirmed.has(id);
  }

  protected override async onStart(): Promise<void> {
    this.#pending.clear();
    this.#confirmed.clear();
    for (const read of await this.#read()) {
      if ("add" in read) this.#pending.set(read.add.first, read.add);
      else if ("done" in read) this.#pending.delete(read.done);
      else this.#confirmed.set(read.confirmed, read.at);
    }
    await this.#rewrite();
  }

  protected override async onStop(): Promise<void> {
    await this.#lines.idle();
    await this.#handle?.close();
    this.#handle = null;
  }

  async #read(): Promise<Line[]> {
    const text = (await this.#platform.files.read(this.#file)) ?? "";
    const lines: Line[] = [];
    let bad = 0;
    for (const each of text.split("\n")) {
      if (each === "") continue;
      const read = parse(each);
      if (read) lines.push(read);
      else bad++;
    }
    // The last line of a process that died while it wrote it was not acknowledged.
    if (bad > 0)
      this.#platform.log.warn({ file: this.#file, lines: bad }, "lines of retractions could not be read");
    return lines;
  }

  async #append(lines: readonly Line[]): Promise<void> {
    if (!this.#handle) throw new Error("the file of retractions is not open");
    // On a new line: the one before may be a half that could not be written to its end.
    await this.#handle.add(`\n${lines.map((each) => JSON.stringify(each)).join("\n")}\n`);
    this.#appendable -= lines.length;
    if (this.#appendable <= 0) {
      await this.#rewrite(lines).catch(async (err: unknown) => {
        const { files, log } = this.#platform;
        log.warn({ file: this.#file, err }, "the file of retractions could not be rewritten");
        this.#handle ??= await files.append(this.#file);
      });
    }
  }

  /** With what is being added now, which is not in the maps yet. */
  async #rewrite(adding: readonly Line[] = []): Promise<void> {
    const since = this.#platform.clock.now() - KEPT_MS;
    for (const [id, at] of this.#confirmed) if (at < since) this.#confirmed.delete(id);
    const kept: Line[] = [
      ...this.pending().map((add) => ({ add })),
      ...[...this.#confirmed].map(([confirmed, at]) => ({ confirmed, at })),
      ...adding.filter((each) => !("done" in each)),
    ];
    // Windows renames nothing onto a file that is open.
    await this.#handle?.close();
    this.#handle = null;
    const { files } = this.#platform;
    await files.replace(this.#file, kept.map((each) => `${JSON.stringify(each)}\n`).join(""));
    this.#handle = await files.append(this.#file);
    this.#appendable = APPENDED_MAX + kept.length;
  }
}

function parse(text: string): Line | null {
  try {
    return line.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

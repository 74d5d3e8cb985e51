/**
 * The round-robin position, stored in a small file so that a restart continues there. The position is not guaranteed:
 * the file is written in the background, not for each job, and any error with it costs a warning and a start at another
 * position.
 */

import { z } from "zod";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle } from "../../platform/service.ts";

const content = z.object({ index: z.int().min(0) });

type PositionPlatform = Pick<Platform, "clock" | "random" | "files" | "log">;

/** Shorter, and a busy node writes all the time; longer, and a crash repeats more of the round. */
const WRITE_BEHIND_MS = 500;
/** A random start is one of so many: a multiple of many small numbers of nodes. */
const STARTS = 5_040;

export class RoundRobinPosition extends Lifecycle {
  readonly #platform: PositionPlatform;
  readonly #file: string | null;
  #index: number;
  #written: number | null = null;
  #warned = false;
  #callOff: (() => void) | null = null;
  #writing: Promise<void> = Promise.resolve();

  /** Without a file the position is kept in memory alone. */
  constructor(platform: PositionPlatform, file: string | null) {
    super();
    this.#platform = platform;
    this.#file = file;
    this.#index = Math.floor(platform.random.chance() * STARTS);
  }

  /** The first of so many positions in a row, which are given out only once. */
  next(count = 1): number {
    const index = this.#index;
    this.#move(index + count);
    return index;
  }

  /** A node has given out all positions below this one. */
  follow(index: number): void {
    if (index > this.#index) this.#move(index);
  }

  protected override async onStart(): Promise<void> {
    if (this.#file === null) return;
    try {
      const text = await this.#platform.files.read(this.#file);
      // A node that starts for the first time has none.
      if (text === null) return;
      this.#index = content.parse(JSON.parse(text)).index;
      this.#written = this.#index;
    } catch (error) {
      this.#warn(error, "no position of the round could be read; starting at a random one");
    }
  }

  protected override async onStop(): Promise<void> {
    this.#callOff?.();
    this.#callOff = null;
    await this.#writing;
    await this.#write();
  }

  #move(index: number): void {
    this.#index = index < Number.MAX_SAFE_INTEGER ? index : 0;
    if (this.#file === null || this.#callOff !== null || !this.running) return;
    this.#callOff = this.#platform.clock.after(WRITE_BEHIND_MS, () => {
      this.#callOff = null;
      this.#writing = this.#writing.then(() => this.#write());
    });
  }

  async #write(): Promise<void> {
    const index = this.#index;
    if (this.#file === null || index === this.#written) return;
    try {
      await this.#platform.files.replace(this.#file, `${JSON.stringify({ index })}\n`);
      this.#written = index;
    } catch (error) {
      this.#warn(
        error,
        "the position of the round could not be written; a restart will start at another one",
      );
    }
  }

  /** Once: what cannot be read can often not be written either, and is no worse the tenth time. */
  #warn(error: unknown, message: string): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#platform.log.warn({ file: this.#file, err: error }, message);
  }
}

/**
 * Keeps the stored schedules in line with the code of the nodes that run: at the start, and again and again, because a roll back takes
 * force when the last node of the newer version is gone.
 */

import type { DeclaredSchedule } from "../../core/schedules/declared-schedules.ts";
import { Backoff, Loop } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { DeclarationWriter } from "./declaration-writer.ts";
import type { Declarations } from "./schedule-declarations.ts";

/** How late at worst a roll back, or the end of a version, is noticed. Shorter, and many nodes read all schedules for nothing. */
const CHECK_MS = 30_000;
const RETRY_MS = [500, 15_000] as const;
/** Failures in a row before anybody is told: a cluster that is forming has no leader yet. */
const QUIET_FAILURES = 5;

export interface DeclaredSchedulesOptions {
  readonly declarations: Declarations;
  readonly writer: DeclarationWriter;
  /** Where each node has a store of its own, only the leader changes schedules, and the others hand theirs over to it. */
  readonly declare: (version: string, declared: readonly DeclaredSchedule[]) => Promise<void>;
  /** Pausing what nobody declares is the leader's work. */
  readonly leads: () => boolean;
  /** In one process, what the code declares is stored when the node has started. */
  readonly alone: boolean;
}

type DeclaredPlatform = Pick<Platform, "clock" | "log" | "random">;

export class DeclaredSchedules extends Lifecycle {
  readonly #platform: DeclaredPlatform;
  readonly #o: DeclaredSchedulesOptions;
  readonly #loop: Loop;
  readonly #backoff: Backoff;

  constructor({ clock, log, random }: DeclaredPlatform, options: DeclaredSchedulesOptions) {
    super();
    this.#platform = { clock, log, random };
    this.#o = options;
    this.#backoff = new Backoff(...RETRY_MS, random);
    this.#loop = new Loop(clock, () => this.#step());
  }

  protected async onStart(): Promise<void> {
    this.#loop.start(this.#o.alone ? await this.#step() : 0);
  }

  protected async onStop(): Promise<void> {
    await this.#loop.stop();
  }

  async #step(): Promise<number> {
    const { alone, leads, writer } = this.#o;
    try {
      await this.#declare();
      if (alone || leads()) await writer.dropOld();
      this.#backoff.reset();
      return CHECK_MS;
    } catch (error) {
      const delayMs = this.#backoff.next();
      if (this.#backoff.failures > QUIET_FAILURES)
        this.#platform.log.warn(
          { err: error, delayMs },
          "schedules of the code are not stored; trying again",
        );
      return delayMs;
    }
  }

  async #declare(): Promise<void> {
    const { declarations, writer, declare } = this.#o;
    const { version, schedules } = declarations;
    if (version === null) return;
    const open = await writer.open(version, schedules);
    if (open.length > 0) await declare(version, open);
  }
}

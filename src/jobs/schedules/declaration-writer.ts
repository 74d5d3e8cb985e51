/**
 * Writes what the rules (core/schedules/declared-schedules.ts) say of schedules that code declares. Every write compares the definition
 * that it was computed from, so nodes that start together, and people who change a schedule at the same moment, overwrite nothing.
 */

import {
  dropped,
  reconcile,
  whyDropped,
  type DeclaredSchedule,
  type Reconciled,
} from "../../core/schedules/declared-schedules.ts";
import type { Schedule } from "../../core/schedules/schedule.ts";
import { atOnce } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import type { ScheduleStore } from "../../store/store.ts";
import { compileTiming } from "./cron.ts";
import type { RunningVersions } from "./running-versions.ts";
import { digestOf } from "./schedule-origin.ts";

/** Under way at once: a store commits them together, and they are no burst for it. */
const WRITES_MAX = 16;

export interface DeclarationWriterOptions {
  readonly schedules: Pick<ScheduleStore, "get" | "list" | "revise">;
  readonly versions: RunningVersions;
  readonly onChanged: (schedule: string) => Promise<void>;
}

export class DeclarationWriter {
  readonly #platform: Pick<Platform, "clock" | "log">;
  readonly #o: DeclarationWriterOptions;
  /** Told once for each: schedules that differ from the code. */
  readonly #told = new Set<string>();

  constructor({ clock, log }: Pick<Platform, "clock" | "log">, options: DeclarationWriterOptions) {
    this.#platform = { clock, log };
    this.#o = options;
  }

  /** Those of the declared ones about which something is to be written, as this node sees the store. */
  async open(version: string, declared: readonly DeclaredSchedule[]): Promise<readonly DeclaredSchedule[]> {
    const stored = new Map((await this.#o.schedules.list()).map((schedule) => [schedule.name, schedule]));
    this.#o.versions.look();
    return declared.filter((one) => {
      const known = stored.get(one.definition.name) ?? null;
      return this.#plan(known, one, version).definition !== null;
    });
  }

  async take(version: string, declared: readonly DeclaredSchedule[]): Promise<void> {
    const { schedules, versions, onChanged } = this.#o;
    versions.look();
    await atOnce(WRITES_MAX, declared.values(), async (one) => {
      const { name } = one.definition;
      const stored = await schedules.get(name);
      const plan = this.#plan(stored, one, version);
      if (!plan.definition) return;
      const state = this.#stateOf(stored, plan);
      // Null: somebody was faster, and the next check looks again.
      if (await schedules.revise(stored, plan.definition, state)) await onChanged(name);
    });
  }

  /** Pauses declared schedules that no running node declares any more. */
  async dropOld(): Promise<void> {
    const { schedules, versions, onChanged } = this.#o;
    const { clock, log } = this.#platform;
    const running = versions.look();
    // Otherwise nobody is there who could declare anything.
    if (!running.some(({ capabilities }) => capabilities.length > 0)) return;
    const knows = (task: string): boolean => running.some(({ capabilities }) => capabilities.includes(task));
    for (const schedule of await schedules.list()) {
      const why = whyDropped(schedule, (version) => versions.has(version), knows);
      if (why === null) continue;
      const definition = dropped(schedule, clock.now(), why);
      if (!(await schedules.revise(schedule, definition, { nextAt: null, paused: true }))) continue;
      log.warn({ schedule: schedule.name, task: schedule.task }, `a schedule of the code is paused: ${why}`);
      await onChanged(schedule.name);
    }
  }

  #plan(stored: Schedule | null, declared: DeclaredSchedule, version: string): Reconciled {
    const known = stored && { schedule: stored, digest: digestOf(stored) };
    const plan = reconcile(known, declared, version, (other) => this.#o.versions.has(other));
    if (plan.differs) this.#tell(declared.definition.name);
    return plan;
  }

  /** An occurrence that is due and not yet fired stays due, and so does what was due while the schedule was dropped. */
  #stateOf(stored: Schedule | null, { definition, droppedAt }: Reconciled) {
    const { following } = compileTiming(definition!.timing);
    const now = this.#platform.clock.now();
    if (!stored) return { nextAt: following(now), paused: false };
    if (droppedAt !== null) return { nextAt: following(droppedAt), paused: false };
    if (stored.paused) return { nextAt: null, paused: true };
    const sameTiming = JSON.stringify(stored.timing) === JSON.stringify(definition!.timing);
    return { nextAt: (sameTiming ? stored.nextAt : null) ?? following(now), paused: false };
  }

  #tell(schedule: string): void {
    if (this.#told.has(schedule)) return;
    this.#told.add(schedule);
    const what = "a schedule of the code was changed by hand and stays so; remove it to go back to the code";
    this.#platform.log.warn({ schedule }, what);
  }
}

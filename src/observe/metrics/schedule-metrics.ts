/** Metrics of schedules: whether they fire in time. Reported by the leader. */

import type { ScheduleSink } from "../../jobs/schedules/schedule-duty.ts";
import type { FireVerdict } from "../../store/store.ts";
import type { Clock } from "../../platform/clock.ts";
import { byLabel, FastHistogram, type Instruments, zeros } from "./instruments.ts";

const LATE_BOUNDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

const FIRES = ["fired", "skipped", "already", "changed", "failed"] as const;

export class ScheduleMetrics implements ScheduleSink {
  readonly #fires: Record<FireVerdict | "failed", number> = zeros(FIRES);
  readonly #late = new FastHistogram(LATE_BOUNDS);
  #known = 0;
  #nextAt: number | null = null;

  constructor(instruments: Instruments, clock: Clock) {
    instruments.register({
      baton_schedule_lag_seconds: () =>
        this.#nextAt === null ? 0 : Math.max(0, clock.now() - this.#nextAt) / 1_000,
      baton_schedules: () => this.#known,
      baton_schedule_fires_total: () => byLabel("result", this.#fires),
      baton_schedule_late_seconds: () => this.#late,
    });
  }

  known(schedules: number): void {
    this.#known = schedules;
  }

  next(at: number | null): void {
    this.#nextAt = at;
  }

  fired(verdict: FireVerdict | "failed", lateMs: number): void {
    this.#fires[verdict]++;
    if (verdict === "fired") this.#late.observe(lateMs / 1_000);
  }
}

/** Where a stored schedule comes from: an operator, the code, or the code with changes by an operator. */

import { createHash } from "node:crypto";
import { withoutDeclaration } from "../../core/schedules/declared-schedules.ts";
import type { Schedule, ScheduleDefinition } from "../../core/schedules/schedule.ts";

/** `changed`: declared in code, then changed by a person. `dropped`: paused, because no code declares it any more. */
export const SCHEDULE_ORIGINS = ["operator", "code", "changed", "dropped"] as const;
export type ScheduleOrigin = (typeof SCHEDULE_ORIGINS)[number];

export function originOf(schedule: Schedule): {
  readonly origin: ScheduleOrigin;
  readonly note: string | null;
} {
  const { declared } = schedule;
  if (!declared) return { origin: "operator", note: null };
  if (declared.dropped) {
    const { at, why } = declared.dropped;
    return { origin: "dropped", note: `paused at ${new Date(at).toISOString()}: ${why}` };
  }
  if (digestOf(schedule) === declared.digest) return { origin: "code", note: null };
  const note = "changed by hand: the code declares something else; remove it to go back to the code";
  return { origin: "changed", note };
}

/** Of what people can change: the definition without what is noted of its declaration. */
export function digestOf(definition: ScheduleDefinition): string {
  return shortHash(JSON.stringify(withoutDeclaration(definition)));
}

/** 64 bits: enough to tell the few versions of one schedule apart. */
export function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

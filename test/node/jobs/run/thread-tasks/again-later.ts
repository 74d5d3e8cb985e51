import type { Duration } from "../../../../../src/core/duration.ts";
import type { TaskContext } from "../../../../../src/jobs/tasks/task.ts";
import { RetryAfter } from "../../../../../src/jobs/tasks/task.ts";

export const isolation = "thread";
export const retry = { delay: "1h" as const };

export default function againLater(payload: Duration, { attempt }: TaskContext): number {
  if (attempt === 1) throw new RetryAfter(payload);
  return attempt;
}

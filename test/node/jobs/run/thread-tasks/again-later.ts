import type { TaskContext } from "../../../../../src/jobs/tasks/task.ts";
import { RetryAfter } from "../../../../../src/jobs/tasks/task.ts";

export const isolation = "thread";
export const retry = { firstDelayMs: 3_600_000 };

export default function againLater(payload: string, { attempt }: TaskContext): number {
  if (attempt === 1) throw new RetryAfter(payload);
  return attempt;
}

/** Groups failed jobs by their error: messages that differ only in numbers, ids and quoted words are in one group. */

export interface FailedJob {
  readonly id: string;
  readonly task: string;
  readonly queue: string;
  readonly code: string;
  readonly message: string;
  readonly at: number;
}

export interface FailureGroup {
  readonly task: string;
  readonly code: string;
  /** Without the parts that differ. */
  readonly message: string;
  readonly count: number;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly example: string;
  readonly queues: readonly string[];
}

/** The beginning is enough to tell groups apart. */
const MESSAGE_LENGTH_MAX = 300;

const BLANKED: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, "…"],
  // An apostrophe within a word opens nothing.
  [/"[^"\n]*"|`[^`\n]*`|(?<!\w)'[^'\n]*'(?!\w)/g, '"…"'],
  [/\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b/gi, "…"],
  [/\d+(?:[.,:]\d+)*/g, "#"],
];

export function blanked(message: string): string {
  let text = message.slice(0, 4 * MESSAGE_LENGTH_MAX);
  for (const [pattern, by] of BLANKED) text = text.replaceAll(pattern, by);
  return text.slice(0, MESSAGE_LENGTH_MAX);
}

export function groupFailures(jobs: readonly FailedJob[]): FailureGroup[] {
  return mergeGroups(
    jobs.map(({ id, task, queue, code, message, at }) => ({
      task,
      code,
      message: blanked(message),
      count: 1,
      firstAt: at,
      lastAt: at,
      example: id,
      queues: [queue],
    })),
  );
}

/** Also groups of several nodes. */
export function mergeGroups(groups: readonly FailureGroup[]): FailureGroup[] {
  const alike = Map.groupBy(groups, ({ task, code, message }) => JSON.stringify([task, code, message]));
  return [...alike.values()].map(merged).sort((a, b) => b.count - a.count || b.lastAt - a.lastAt);
}

function merged(parts: readonly FailureGroup[]): FailureGroup {
  const latest = parts.reduce((one, other) => (other.lastAt > one.lastAt ? other : one));
  return {
    ...latest,
    count: parts.reduce((sum, { count }) => sum + count, 0),
    firstAt: parts.reduce((at, part) => Math.min(at, part.firstAt), latest.firstAt),
    queues: [...new Set(parts.flatMap(({ queues }) => queues))].sort(),
  };
}

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
  /** With what differs left out. */
  readonly message: string;
  readonly count: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** The latest. */
  readonly example: string;
  readonly queues: readonly string[];
}

/** Only the beginning of a long message tells groups apart. */
const MESSAGE_LENGTH_MAX = 300;

const BLANKED: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, "…"],
  // An apostrophe within a word opens nothing.
  [/"[^"\n]*"|`[^`\n]*`|(?<!\w)'[^'\n]*'(?!\w)/g, '"…"'],
  [/\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b/gi, "…"],
  [/\d+(?:[.,:]\d+)*/g, "#"],
];

/** The same for every message of its kind. */
export function blanked(message: string): string {
  let text = message.slice(0, 4 * MESSAGE_LENGTH_MAX);
  for (const [pattern, by] of BLANKED) text = text.replaceAll(pattern, by);
  return text.slice(0, MESSAGE_LENGTH_MAX);
}

/** The largest first. */
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

/** Also those of several nodes, which have grouped each for itself. */
export function mergeGroups(groups: readonly FailureGroup[]): FailureGroup[] {
  const merged = new Map<string, FailureGroup & { queues: string[] }>();
  for (const group of groups) {
    const key = JSON.stringify([group.task, group.code, group.message]);
    const known = merged.get(key);
    if (!known) {
      merged.set(key, { ...group, queues: [...group.queues] });
      continue;
    }
    const later = group.lastAt > known.lastAt;
    merged.set(key, {
      ...known,
      count: known.count + group.count,
      firstAt: Math.min(known.firstAt, group.firstAt),
      lastAt: Math.max(known.lastAt, group.lastAt),
      example: later ? group.example : known.example,
      queues: known.queues,
    });
    for (const queue of group.queues) if (!known.queues.includes(queue)) known.queues.push(queue);
  }
  return [...merged.values()]
    .map((group) => ({ ...group, queues: group.queues.sort() }))
    .sort((a, b) => b.count - a.count || b.lastAt - a.lastAt);
}

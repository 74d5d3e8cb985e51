import type { TaskContext } from "batonjs/task";

/** Logs what it is given, word for word, and gives it back. */
export default function say(
  payload: { readonly lines: readonly string[] },
  { log, progress }: TaskContext,
): unknown {
  for (const line of payload.lines) log(line);
  progress(50, payload.lines.join(" "));
  return payload;
}

/** Waits for the end of a job, and shows its progress. */

import type { BatonClient, FollowEvent } from "../../client/baton-client.ts";
import { formatDuration } from "../../config/values/units.ts";
import { Deadline } from "../../platform/loop.ts";
import { CliFailure, EXIT } from "../failure.ts";
import type { NodeOptions } from "../node-options.ts";
import { print } from "../terminal/output.ts";
import { ProgressBar } from "../terminal/progress-bar.ts";
import { progressText } from "./job-text.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** A job that still waits after this long has a reason that the caller should see. */
const EXPLAIN_AFTER_MS = 1_500;

type EndEvent = Extract<FollowEvent, { event: "end" }>;

/** The result goes to stdout, the way there to stderr. */
export async function waitForResult(
  terminal: Terminal,
  client: BatonClient,
  id: string,
  options: NodeOptions,
  first: string,
): Promise<void> {
  const line = new ProgressBar(terminal);
  const { clock } = terminal;
  const explaining = clock.after(EXPLAIN_AFTER_MS, () => void explain(client, id, line));
  using limit = options.timeout === undefined ? null : new Deadline(clock, options.timeout);
  let end: EndEvent | null = null;
  try {
    line.say(first);
    for await (const event of client.followLogs(id, { ...(limit && { signal: limit.signal }) })) {
      if (event.event === "progress") line.say(`${id} ${progressText(event.progress, event.message) ?? ""}`);
      if (event.event === "end") end = event;
    }
  } finally {
    explaining();
    line.clear();
  }
  if (end === null) {
    const message = `${id} is not finished after ${formatDuration(options.timeout!)}`;
    throw new CliFailure(EXIT.timeout, message, `it goes on: baton jobs logs -f ${id}`);
  }
  if (end.status !== "completed") {
    const why = end.error ? `: ${end.error.message} (${end.error.code})` : "";
    throw new CliFailure(EXIT.failure, `${id} ${end.status === "failed" ? "" : "was "}${end.status}${why}`);
  }
  const { result } = await client.result(id);
  print(terminal, options.output === "table" ? "json" : options.output, result, () => "");
}

/** Only a courtesy: if it cannot be had, the wait goes on without it. */
async function explain(client: BatonClient, id: string, line: ProgressBar): Promise<void> {
  const job = await client.job(id).catch(() => null);
  if (job?.waiting_for) line.say(`${id} waits: ${job.waiting_for.message}`);
}

/** `baton submit`: hand in a job, and wait for its result if asked to. */

import type { Command } from "commander";
import { BatonClientError } from "../client/error.ts";
import type { BatonClient, FollowEvent, SubmittedBody } from "../client/client.ts";
import { formatDuration } from "../config/duration.ts";
import { CliFailure, EXIT } from "./failure.ts";
import type { NodeOptions } from "./node-options.ts";
import { connect, duration, instant, wholeNumber, withNodeOptions } from "./node-options.ts";
import { print, statusText } from "./output.ts";
import { readPayload } from "./payload.ts";
import { ProgressLine, progressText } from "./progress-line.ts";
import type { Terminal } from "./terminal.ts";
import { say } from "./terminal.ts";

/** A job that still waits after this long has a reason that the caller should see. */
const EXPLAIN_AFTER_MS = 1_500;

type EndEvent = Extract<FollowEvent, { event: "end" }>;

export interface JobOptions {
  readonly queue?: string;
  readonly priority?: number;
  readonly maxAttempts?: number;
  readonly timeoutJob?: number;
  readonly payloadFile?: string;
}

interface SubmitOptions extends JobOptions, NodeOptions {
  readonly delay?: number;
  readonly runAt?: string;
  readonly idempotencyKey?: string;
  readonly wait?: boolean;
}

/** What a submitted job and a schedule's job have in common. */
export function withJobOptions(command: Command): Command {
  return command
    .option("--queue <name>", "queue to put it into")
    .option("--priority <number>", "from -100 to 100; higher runs first", wholeNumber)
    .option("--max-attempts <number>", "how many attempts it has", wholeNumber)
    .option("--timeout-job <duration>", "longest run, such as 5m", duration)
    .option("--payload-file <file>", "read the payload from a file, or from stdin with -");
}

/** Those of a submitted job and a schedule's job, as they travel. */
export function jobFields(options: JobOptions, payload: unknown) {
  return {
    payload,
    queue: options.queue,
    priority: options.priority,
    max_attempts: options.maxAttempts,
    timeout_ms: options.timeoutJob,
  };
}

export function addSubmitCommand(program: Command, terminal: Terminal): void {
  withNodeOptions(withJobOptions(program.command("submit")))
    .description("submit a job")
    .argument("<task>", "name of the task")
    .argument("[json]", "the payload")
    .option("--delay <duration>", "run it this much later, such as 30s", duration)
    .option("--run-at <time>", "run it at this time, such as 2026-01-31T09:00:00Z", instant)
    .option("--idempotency-key <key>", "the same key gives the same job")
    .option("--wait", "wait for the result and print it; --timeout then bounds the whole wait")
    .action((task: string, json: string | undefined, options: SubmitOptions) =>
      submit(terminal, task, json, options),
    );
}

async function submit(
  terminal: Terminal,
  task: string,
  json: string | undefined,
  options: SubmitOptions,
): Promise<void> {
  if (options.delay !== undefined && options.runAt !== undefined) {
    throw new CliFailure(EXIT.usage, "give --delay or --run-at, not both");
  }
  const payload = await readPayload(terminal, json, options.payloadFile);
  await using client = await connect(terminal, options);
  const body = {
    task,
    ...jobFields(options, payload),
    delay_ms: options.delay,
    run_at: options.runAt,
    idempotency_key: options.idempotencyKey,
  };
  // Without a key of the client's making: among peers a key decides which node gets the job, and jobs of a person go in turn.
  const submitted = (await client.request("POST /jobs", { body }).catch((error: unknown) => {
    throw unknownOutcome(error) ?? error;
  })) as SubmittedBody;
  if (options.wait) {
    // Awaited here: the connection is closed when this function returns.
    await waitFor(terminal, client, submitted.job_id, options);
    return;
  }
  print(terminal, options.output, submitted, () => submitted.job_id);
  if (options.output === "table") say(terminal, statusText(terminal, submitted.status));
}

/** No answer came, yet the job may be there: to submit it again could make two. */
function unknownOutcome(error: unknown): CliFailure | null {
  if (!(error instanceof BatonClientError) || !error.maybeDone) return null;
  const { code: why } = error.cause instanceof BatonClientError ? error.cause : error;
  const code = why === "TIMEOUT" ? EXIT.timeout : EXIT.unreachable;
  const hint =
    "the job may have been taken: look with `baton jobs list`, or repeat with the same --idempotency-key";
  return new CliFailure(code, error.message, hint);
}

/** The result goes to stdout, the way there to stderr. */
async function waitFor(
  terminal: Terminal,
  client: BatonClient,
  id: string,
  options: NodeOptions,
): Promise<void> {
  const line = new ProgressLine(terminal);
  const explaining = terminal.clock.after(EXPLAIN_AFTER_MS, () => void explain(client, id, line));
  let end: EndEvent | null;
  try {
    line.show(`${id} submitted`);
    end = await untilEnd(terminal, client, id, options.timeout, line);
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

/** Null if the time was up first. */
async function untilEnd(
  terminal: Terminal,
  client: BatonClient,
  id: string,
  timeoutMs: number | undefined,
  line: ProgressLine,
): Promise<EndEvent | null> {
  const patience = new AbortController();
  const cancel = timeoutMs === undefined ? () => {} : terminal.clock.after(timeoutMs, () => patience.abort());
  try {
    for await (const event of client.followLogs(id, { signal: patience.signal })) {
      if (event.event === "progress") line.show(`${id} ${progressText(event.progress, event.message)}`);
      if (event.event === "end") return event;
    }
    return null;
  } finally {
    cancel();
  }
}

/** Only a courtesy: if it cannot be had, the wait goes on without it. */
async function explain(client: BatonClient, id: string, line: ProgressLine): Promise<void> {
  const job = await client.job(id).catch(() => null);
  if (job?.waiting_for) line.show(`${id} waits: ${job.waiting_for.message}`);
}

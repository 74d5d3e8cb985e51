/** `baton submit`: hand in a job, and wait for its result if asked to. */

import type { Command } from "commander";
import { BatonClientError } from "../client/error.ts";
import type { SubmittedBody } from "../client/client.ts";
import { CliFailure, EXIT } from "./failure.ts";
import type { NodeOptions } from "./node-options.ts";
import { connect, duration, instant, wholeNumber, withNodeOptions } from "./node-options.ts";
import { print, statusText } from "./output.ts";
import { readPayload } from "./payload.ts";
import { submitLines } from "./submit-lines.ts";
import type { Terminal } from "./terminal.ts";
import { isAttended, say } from "./terminal.ts";
import { waitForResult } from "./wait.ts";

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
  readonly eachLine?: string;
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
    .option("--each-line <file>", "a job for each line of a file, which is its payload; - for stdin")
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
  const jobOf = (payload: unknown) => ({
    task,
    ...jobFields(options, payload),
    delay_ms: options.delay,
    run_at: options.runAt,
  });
  if (options.eachLine !== undefined) {
    if (json !== undefined || options.payloadFile !== undefined || options.wait) {
      throw new CliFailure(EXIT.usage, "--each-line goes with no other payload, and with no --wait");
    }
    await using client = await connect(terminal, options);
    const { eachLine: file, output, idempotencyKey: key } = options;
    await submitLines(terminal, client, { file, output, key, jobOf });
    return;
  }
  const payload = await readPayload(terminal, json, options.payloadFile);
  await using client = await connect(terminal, options);
  const body = { ...jobOf(payload), idempotency_key: options.idempotencyKey };
  // Without a key of the client's making: among peers a key decides which node gets the job, and jobs of a person go in turn.
  const submitted = (await client.request("POST /jobs", { body }).catch((error: unknown) => {
    throw unknownOutcome(error) ?? error;
  })) as SubmittedBody;
  if (options.wait) {
    // Awaited here: the connection is closed when this function returns.
    await waitForResult(terminal, client, submitted.job_id, options, `${submitted.job_id} submitted`);
    return;
  }
  print(terminal, options.output, submitted, () => submitted.job_id);
  if (options.output !== "table") return;
  say(terminal, statusText(terminal, submitted.status));
  // Mostly a slip of the finger, which somebody who sits there wants to know now and not after an hour.
  if (!isAttended(terminal) || submitted.status !== "queued") return;
  const waits = await client.job(submitted.job_id).then(
    (job) => job.waiting_for,
    () => null,
  );
  if (waits?.code === "no_worker" || waits?.code === "unknown_task") say(terminal, `note: ${waits.message}`);
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

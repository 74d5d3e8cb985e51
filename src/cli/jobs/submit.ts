/** `baton submit` and `baton call`: submit a job or run a task, wait for the result and show the progress meanwhile. */

import { type Command, Option } from "commander";
import { CallError } from "../../client/client-error.ts";
import type { JobRequestBody, SubmittedBody, BatonClient, FollowEvent } from "../../client/baton-client.ts";
import { FLAG_FIELDS, type Fields } from "../../core/jobs/job-fields.ts";
import { addClientCommand, type ClientCall } from "../client-command.ts";
import { CliFailure, EXIT } from "../failure.ts";
import {
  connect,
  duration,
  instant,
  type NodeOptions,
  repeated,
  wholeNumber,
  withNodeOptions,
} from "../node-options.ts";
import { print, statusText } from "../terminal/output.ts";
import { readPayload } from "./payload.ts";
import { submitLines } from "./submit-lines.ts";
import { isAttended, say, type Terminal } from "../terminal/terminal.ts";
import { below } from "../terminal/help-layout.ts";
import { durationText } from "../../core/duration.ts";
import { Deadline } from "../../platform/loop.ts";
import { ProgressBar } from "../terminal/progress-bar.ts";
import { progressText } from "./job-text.ts";

export interface JobOptions {
  readonly payloadFile?: string;
}

interface SubmitOptions extends JobOptions, NodeOptions {
  readonly delay?: number;
  readonly runAt?: string;
  readonly idempotencyKey?: string;
  readonly wait?: boolean;
  readonly eachLine?: string;
}

const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  "<number>": wholeNumber,
  "<duration>": duration,
  "<time>": instant,
};

export function withJobOptions(command: Command, of: "job" | "schedule"): Command {
  for (const { flag, kind, scheduled } of FLAG_FIELDS) {
    if (of === "schedule" && !scheduled) continue;
    const option = new Option(flag.text, flag.about);
    const parse = PARSERS[flag.text.split(" ")[1]!];
    if (parse) option.argParser(parse);
    if (kind === "texts") option.argParser(repeated);
    command.addOption(option);
  }
  return command.option("--payload-file <file>", "read the payload from a file, or from stdin with -");
}

export function jobFields(options: JobOptions, payload: unknown): Partial<Omit<JobRequestBody, "task">> {
  const given = (flag: string): unknown => (options as Fields)[new Option(flag).attributeName()];
  const fields = FLAG_FIELDS.map(({ wire, flag }) => [wire, given(flag.text)]);
  return { payload, ...Object.fromEntries(fields) };
}

export function addSubmitCommand(program: Command, terminal: Terminal): void {
  withNodeOptions(withJobOptions(program.command("submit"), "job"))
    .description("submit a job")
    .argument("<task>", "name of the task")
    .argument("[json]", "the payload")
    .option("--each-line <file>", "a job for each line of a file, which is its payload; - for stdin")
    .option("--wait", "wait for the result and print it; --timeout then bounds the whole wait")
    .action(submit.bind(null, terminal));
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
  const jobOf = (payload: unknown) => ({ task, ...jobFields(options, payload) });
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
  const body = jobOf(payload);
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
  const known = submitted.existed ? " (this job has the key already; no other was made)" : "";
  say(terminal, statusText(terminal, submitted.status) + known);
  // Mostly a slip of the finger, which somebody who sits there wants to know now and not after an hour.
  if (!isAttended(terminal) || submitted.status !== "queued") return;
  const waits = (await client.job(submitted.job_id).catch(() => null))?.waiting_for;
  if (waits?.code === "no_worker" || waits?.code === "unknown_task") say(terminal, `note: ${waits.message}`);
}

/** No answer came, yet the job may be there: to submit it again could make two. */
function unknownOutcome(error: unknown): CliFailure | null {
  if (!(error instanceof CallError) || !error.maybeDone) return null;
  const { code: why } = error.cause instanceof CallError ? error.cause : error;
  const code = why === "TIMEOUT" ? EXIT.timeout : EXIT.unreachable;
  const hint =
    "the job may have been taken: look with `baton jobs list`, or repeat with the same --idempotency-key";
  return new CliFailure(code, error.message, hint);
}

/** As long as a node waits by default (`functions.timeout`). */
const WAIT_MS = 30_000;

export function addCallCommand(program: Command, terminal: Terminal): void {
  addClientCommand(program, terminal, {
    usage: "call",
    about: "run a task now and print its result",
    setUp: (command) =>
      command
        .argument("<task>", "name of the task")
        .argument("[json]", "the payload")
        .option("--payload-file <file>", "read the payload from a file, or from stdin with -")
        .addHelpText("after", below(terminal, "--timeout is how long to wait for the result (default 30s).")),
    call: async (client, { name: task, args: [, json], options }: ClientCall<JobOptions>) => {
      const payload = await readPayload(terminal, json, options.payloadFile);
      try {
        return (await client.call(task, payload, { timeoutMs: options.timeout ?? WAIT_MS })).result;
      } catch (error) {
        throw (await explained(client, error)) ?? error;
      }
    },
    text: (result) => JSON.stringify(result, null, 2),
  });
}

async function explained(client: BatonClient, error: unknown): Promise<CliFailure | null> {
  if (!(error instanceof CallError)) return null;
  const { job_id: id } = (error.body ?? {}) as { job_id?: string };
  if (error.code === "FUNCTION_FAILED") {
    const hint = id === undefined ? null : `baton jobs logs ${id}`;
    return new CliFailure(EXIT.failure, error.message, hint);
  }
  if (error.code !== "TIMEOUT" || id === undefined) return null;
  const job = await client.job(id).catch(() => null);
  const hint = job?.waiting_for?.message ?? `wait for it with: baton jobs logs -f ${id}`;
  return new CliFailure(EXIT.timeout, error.message, hint);
}

/** A job that still waits after this long has a reason that the caller should see. */
const EXPLAIN_AFTER_MS = 1_500;

type EndEvent = Extract<FollowEvent, { event: "end" }>;

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
    for await (const event of client.followLogs(id, { signal: limit?.signal })) {
      if (event.event === "progress") line.say(`${id} ${progressText(event.progress, event.message) ?? ""}`);
      if (event.event === "end") end = event;
    }
  } finally {
    explaining();
    line.clear();
  }
  if (end === null) {
    const message = `${id} is not finished after ${durationText(options.timeout!)}`;
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

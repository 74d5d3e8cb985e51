/** `baton submit TASK --each-line FILE`: submits a job for each line, in batches, and prints their ids. */

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import type { BatonClient, JobRequestBody } from "../../client/baton-client.ts";
import { CallError } from "../../client/client-error.ts";
import { asFailure, CliFailure, EXIT } from "../failure.ts";
import { count, several, span } from "../../core/format-figures.ts";
import { parseTypedJson } from "./payload.ts";
import type { OutputFormat } from "../terminal/output.ts";
import { ProgressBar } from "../terminal/progress-bar.ts";
import { say, type Terminal } from "../terminal/terminal.ts";

/** Larger ones are no faster, and one bad line costs more of its neighbours. */
const BATCH = 500;

export interface LinesOptions {
  readonly file: string;
  readonly output: OutputFormat;
  /** Made longer by the number of the line, so that the same file twice makes no job twice. */
  readonly key: string | undefined;
  readonly jobOf: (payload: unknown) => JobRequestBody;
}

interface Numbered {
  readonly line: number;
  readonly job: JobRequestBody;
}

export async function submitLines(
  terminal: Terminal,
  client: BatonClient,
  { file, output, key, jobOf }: LinesOptions,
): Promise<void> {
  const { clock, out } = terminal;
  const since = clock.monotonic();
  const path = file === "-" ? null : resolve(terminal.cwd, file);
  const total = path === null ? null : await linesIn(path, file);
  const bar = new ProgressBar(terminal, "submitting");
  let done = 0;
  let known = 0;
  const send = async (batch: readonly Numbered[]): Promise<void> => {
    if (batch.length === 0) return;
    const taken = await client.submitMany(batch.map(({ job }) => job)).catch((error: unknown) => {
      throw explained(error, batch, done);
    });
    done += taken.length;
    known += taken.filter(({ existed }) => existed).length;
    const shown = taken.map(({ job_id, existed }, at) => {
      return output === "table" ? job_id : JSON.stringify({ line: batch[at]!.line, job_id, existed });
    });
    out.write(shown.map((each) => `${each}\n`).join(""));
    bar.show(done, total);
  };
  try {
    let batch: Numbered[] = [];
    let line = 0;
    for await (const text of linesOf(terminal, path)) {
      line++;
      if (text.trim() === "") continue;
      const payload = parseTypedJson(text, `line ${line} of ${file === "-" ? "stdin" : file}`);
      const keyed = key !== undefined && { idempotency_key: `${key}:${line}` };
      batch.push({ line, job: { ...jobOf(payload), ...keyed } });
      if (batch.length < BATCH) continue;
      await send(batch);
      batch = [];
    }
    await send(batch);
  } finally {
    bar.clear();
  }
  const existed = known > 0 ? `, of which ${count(known)} existed already` : "";
  say(terminal, `${several(done, "job")} submitted in ${span(clock.monotonic() - since)}${existed}`);
}

function linesOf(terminal: Terminal, path: string | null): AsyncIterable<string> {
  const input = path === null ? terminal.input : createReadStream(path);
  return createInterface({ input, crlfDelay: Infinity });
}

/** Counted first, so that the bar knows its end: a pass over the file is nothing beside submitting it. */
async function linesIn(path: string, shown: string): Promise<number> {
  const found = await stat(path).catch(() => null);
  if (!found?.isFile()) {
    const why = found === null ? "there is no such file" : "it is no file";
    throw new CliFailure(EXIT.usage, `--each-line ${shown} cannot be read: ${why}`);
  }
  let lines = 0;
  for await (const text of linesOf({} as Terminal, path)) if (text.trim() !== "") lines++;
  return lines;
}

function explained(error: unknown, batch: readonly Numbered[], done: number): unknown {
  if (!(error instanceof CallError)) return error;
  const { exitCode, message } = asFailure(error);
  const place = error.status === null ? "" : `lines ${batch[0]!.line} to ${batch.at(-1)!.line}: `;
  const hint = `${count(done)} jobs before them are submitted; repeat with the same --idempotency-key to go on without doubles`;
  return new CliFailure(exitCode, place + message, hint);
}

/** `baton call`: runs a task and prints its result. */

import type { Command } from "commander";
import type { BatonClient } from "../../client/baton-client.ts";
import { BatonClientError } from "../../client/client-error.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { below } from "../terminal/help-layout.ts";
import type { NodeOptions } from "../node-options.ts";
import { connect, withNodeOptions } from "../node-options.ts";
import { print } from "../terminal/output.ts";
import { readPayload } from "./payload.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** As long as a node waits by default (`functions.timeout`). */
const WAIT_MS = 30_000;

interface CallOptions extends NodeOptions {
  readonly payloadFile?: string;
}

export function addCallCommand(program: Command, terminal: Terminal): void {
  withNodeOptions(program.command("call"))
    .description("run a task now and print its result")
    .argument("<task>", "name of the task")
    .argument("[json]", "the payload")
    .option("--payload-file <file>", "read the payload from a file, or from stdin with -")
    .addHelpText("after", below(terminal, "--timeout is how long to wait for the result (default 30s)."))
    .action((task: string, json: string | undefined, options: CallOptions) =>
      call(terminal, task, json, options),
    );
}

async function call(
  terminal: Terminal,
  task: string,
  json: string | undefined,
  options: CallOptions,
): Promise<void> {
  const payload = await readPayload(terminal, json, options.payloadFile);
  await using client = await connect(terminal, options);
  const { result } = await client
    .call(task, payload, { timeoutMs: options.timeout ?? WAIT_MS })
    .catch(async (error: unknown) => {
      throw (await explained(client, error)) ?? error;
    });
  print(terminal, options.output === "table" ? "json" : options.output, result, () => "");
}

async function explained(client: BatonClient, error: unknown): Promise<CliFailure | null> {
  if (!(error instanceof BatonClientError)) return null;
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

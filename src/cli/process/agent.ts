/** `baton agent`: runs an agent, which needs only the HTTP API of a cluster, until a signal. */

import { type Command, InvalidArgumentError } from "commander";
import { loadSettings } from "../../config/load-settings.ts";
import { AGENT_NAME } from "../../core/agent.ts";
import { THING_NAME } from "../../core/ids.ts";
import type { Log } from "../../platform/log.ts";
import { TOKEN_OPTION, tokenFrom } from "../admin/credential.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { below } from "../terminal/help-layout.ts";
import { DEFAULT_URL, nodeUrls, repeated } from "../node-options.ts";
import { leftoverText, reportUncaught, untilStopped } from "./shutdown.ts";
import { say, type Terminal } from "../terminal/terminal.ts";

interface AgentCommandOptions {
  readonly url?: readonly string[];
  readonly token?: string;
  readonly tasks?: readonly string[];
  readonly name?: string;
  readonly concurrency?: string;
  readonly queues?: readonly string[];
  readonly config?: string;
  readonly logLevel?: string;
  readonly logFormat?: string;
}

export function addAgentCommand(program: Command, terminal: Terminal): void {
  program
    .command("agent")
    .description("run jobs of a cluster, leased over HTTP")
    .option(
      "--url <url,url…>",
      `URLs of some nodes; it learns of the others (BATON_URL; default ${DEFAULT_URL})`,
      list,
    )
    .option(...TOKEN_OPTION)
    .option("--tasks <dir>", "directory of task modules (BATON_TASKS). May be repeated.", repeated)
    .option(
      "--name <name>",
      "name of this agent (default: the node's name with -worker behind it)",
      agentName,
    )
    .option("--concurrency <number>", "how many jobs run at the same time (BATON_WORKER__CONCURRENCY)")
    .option("--queues <queue,queue…>", "only jobs of these queues (BATON_WORKER__QUEUES)", queueList)
    .option("--config <file>", "configuration file, of which only tasks, worker, drain and log are looked at")
    .option("--log-level <debug|info|warn|error|silent>", "least level that is logged")
    .option("--log-format <auto|json|pretty>", "how lines look")
    .addHelpText("after", below(terminal, "What it does and what another language must do: docs/agents.md."))
    .action((options: AgentCommandOptions) => runAgent(terminal, options));
}

async function runAgent(terminal: Terminal, options: AgentCommandOptions): Promise<void> {
  const urls = nodeUrls(terminal, { url: options.url?.join(",") });
  const { settings } = loadSettings({
    cwd: terminal.cwd,
    environment: terminal.environment,
    configFile: options.config,
    flags: {
      tasks: options.tasks,
      "worker.concurrency": options.concurrency,
      "log.level": options.logLevel,
      "log.format": options.logFormat,
    },
  });
  const { concurrency } = settings.worker;
  if (concurrency < 1) throw new CliFailure(EXIT.usage, "--concurrency must be at least 1 for an agent");
  const name = options.name ?? `${settings.name}-worker`;
  const { openAgent } = await import("../../agent/open-agent.ts");
  const { agent, log, tasks } = await openAgent({
    urls,
    token: tokenFrom(terminal, options),
    name,
    folders: settings.tasks,
    concurrency,
    queues: options.queues ?? settings.worker.queues,
    drain: settings.drain,
    log: settings.log,
    clock: terminal.clock,
    onDied: (error) => die(log, error),
  });
  reportUncaught(log, () => agent.list());
  // Before the start: a signal that comes early must find us listening.
  const code = untilStopped(terminal, {
    stop: ({ hurry }) => {
      if (hurry) agent.hurry();
      return agent.stop();
    },
    leftovers: () => leftoverText(agent.list()),
    drainTimeoutMs: settings.drain.timeoutMs,
  });
  await agent.start();
  say(terminal, `agent ${name} runs ${[...tasks.names()].join(", ")} for ${urls.join(", ")}`);
  // Timers and sockets that a task has left open must not keep a stopped agent alive.
  process.exit(await code);
}

function die(log: Log, error: unknown): void {
  log.error({ err: error }, "the link to the controllers died; the process ends, and its leases run out");
  process.exit(EXIT.failure);
}

// Readers of option values. Commander puts the name of the option before the message.

function list(text: string, before: readonly string[] | undefined): readonly string[] {
  const parts = text.split(",").map((each) => each.trim());
  return [...(before ?? []), ...parts.filter((each) => each !== "")];
}

function queueList(text: string, before: readonly string[] | undefined): readonly string[] {
  const queues = list(text, before);
  const bad = queues.find((queue) => !THING_NAME.test(queue));
  if (bad !== undefined) throw new InvalidArgumentError(`${JSON.stringify(bad)} is no name of a queue.`);
  return queues;
}

function agentName(text: string): string {
  if (AGENT_NAME.test(text)) return text;
  throw new InvalidArgumentError(
    "It must be letters, digits and . _ - (up to 128), with a letter or a digit at both ends.",
  );
}

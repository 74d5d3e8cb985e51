/** The command line: all commands wired together, and every way to end turned into an exit code. */

import { Command, CommanderError } from "commander";
import { stopAsSignal } from "../supervisor/stop-message.ts";
import { VERSION } from "../version.ts";
import { addAgentCommand } from "./agent.ts";
import { addCallCommand } from "./call.ts";
import { addClusterCommands } from "./cluster.ts";
import { addCompletionCommand } from "./completion/completion.ts";
import { addConfigCommands } from "./config.ts";
import { addControllerCommands } from "./controller.ts";
import { addDemoCommand } from "./demo.ts";
import { addDoctorCommand } from "./doctor/doctor.ts";
import { addEventsCommand } from "./events.ts";
import { EXIT, tell } from "./failure.ts";
import { below, HELP_LAYOUT, HELP_WIDTH } from "./help.ts";
import { addJobsCommands } from "./jobs.ts";
import { addLeaderCommand } from "./leader.ts";
import { addNodeCommands } from "./node.ts";
import { addNodesCommands } from "./nodes.ts";
import { addQueuesCommands } from "./queues.ts";
import { addSchedulesCommands } from "./schedules.ts";
import { addSecretCommands } from "./secret.ts";
import { addStartCommand } from "./start.ts";
import { addStatusCommands } from "./status.ts";
import { addTokenCommands } from "./token.ts";
import { addSubmitCommand } from "./submit.ts";
import { addUserCommands } from "./user.ts";
import type { Terminal } from "./terminal.ts";
import { systemTerminal } from "./terminal.ts";
import { addTopCommand } from "./top/top.ts";

const EPILOGUE = [
  "Commands that talk to a node take --url (several with commas) or BATON_URL, and -o table|json|yaml: data goes to stdout, the rest to stderr.",
  "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 refused, 5 node not reachable, 78 wrong configuration, 124 took too long.",
];

/** By what people want; a group's name ends in "commands:". */
const GROUPS: readonly (readonly [string, readonly ((program: Command, terminal: Terminal) => void)[]])[] = [
  ["Starting commands:", [addDemoCommand, addStartCommand, addAgentCommand, addControllerCommands]],
  [
    "Job commands:",
    [addSubmitCommand, addCallCommand, addJobsCommands, addQueuesCommands, addSchedulesCommands],
  ],
  [
    "Cluster commands:",
    [
      addTopCommand,
      addStatusCommands,
      addClusterCommands,
      addNodesCommands,
      addNodeCommands,
      addLeaderCommand,
      addEventsCommand,
    ],
  ],
  [
    "Set-up commands:",
    [
      addDoctorCommand,
      addConfigCommands,
      addTokenCommands,
      addUserCommands,
      addSecretCommands,
      addCompletionCommand,
    ],
  ],
];

/** Gives the exit code. */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const program = new Command("baton")
    .description("A highly available job cluster for TypeScript and Node.js")
    .version(VERSION, "-V, --version")
    .showHelpAfterError("(add --help for the possibilities)")
    .addHelpText("after", below(terminal, ...EPILOGUE))
    .configureHelp(HELP_LAYOUT)
    .addHelpCommand(helpCommand().helpGroup("Set-up commands:"))
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void terminal.out.write(text),
      writeErr: (text) => void terminal.err.write(text),
      getOutHelpWidth: () => terminal.out.columns ?? HELP_WIDTH,
      getErrHelpWidth: () => terminal.err.columns ?? HELP_WIDTH,
    });
  for (const [group, adders] of GROUPS) {
    program.commandsGroup(group);
    for (const add of adders) add(program, terminal);
  }
  for (const group of program.commands) if (group.commands.length > 0) group.addHelpCommand(helpCommand());
  try {
    await program.parseAsync([...args], { from: "user" });
    return EXIT.ok;
  } catch (error) {
    // Commander has said what it had to say.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return tell(terminal, error);
  }
}

function helpCommand(): Command {
  return new Command("help").argument("[command]").description("show the help of a command");
}

/** Called by bin/baton.mjs. */
export async function run(): Promise<void> {
  stopAsSignal();
  // `baton jobs list | head` closes the pipe early, which is no failure.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  // Set and not exited: what was written to a pipe must get out first.
  process.exitCode = await main(process.argv.slice(2), systemTerminal());
}

/** The command line: all commands wired together, and every way to end turned into an exit code. */

import { Command, CommanderError } from "commander";
import { stopAsSignal } from "../supervisor/stop-message.ts";
import { VERSION } from "../version.ts";
import { addAgentCommand } from "./agent.ts";
import { addCallCommand } from "./call.ts";
import { addClusterCommands } from "./cluster.ts";
import { addConfigCommands } from "./config.ts";
import { addControllerCommands } from "./controller.ts";
import { addDemoCommand } from "./demo.ts";
import { addDoctorCommand } from "./doctor/doctor.ts";
import { EXIT, tell } from "./failure.ts";
import { addJobsCommands } from "./jobs.ts";
import { addNodeCommands } from "./node.ts";
import { addQueuesCommands } from "./queues.ts";
import { addSchedulesCommands } from "./schedules.ts";
import { addSecretCommands } from "./secret.ts";
import { addStartCommand } from "./start.ts";
import { addStatusCommands } from "./status.ts";
import { addSubmitCommand } from "./submit.ts";
import type { Terminal } from "./terminal.ts";
import { systemTerminal } from "./terminal.ts";

const EPILOGUE = `
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 refused, 5 node not reachable, 78 wrong configuration,
124 took too long.`;

/** Gives the exit code. */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const program = new Command("baton")
    .description("A highly available job cluster for TypeScript and Node.js")
    .version(VERSION, "-V, --version")
    .showHelpAfterError("(add --help for the possibilities)")
    .addHelpText("after", EPILOGUE)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void terminal.out.write(text),
      writeErr: (text) => void terminal.err.write(text),
      getOutHelpWidth: () => terminal.out.columns ?? 100,
      getErrHelpWidth: () => terminal.err.columns ?? 100,
    });
  addDemoCommand(program, terminal);
  addStartCommand(program, terminal);
  addControllerCommands(program, terminal);
  addAgentCommand(program, terminal);
  addSubmitCommand(program, terminal);
  addCallCommand(program, terminal);
  addJobsCommands(program, terminal);
  addQueuesCommands(program, terminal);
  addSchedulesCommands(program, terminal);
  addStatusCommands(program, terminal);
  addClusterCommands(program, terminal);
  addNodeCommands(program, terminal);
  addDoctorCommand(program, terminal);
  addConfigCommands(program, terminal);
  addSecretCommands(program, terminal);
  try {
    await program.parseAsync([...args], { from: "user" });
    return EXIT.ok;
  } catch (error) {
    // Commander has said what it had to say.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return tell(terminal, error);
  }
}

/** Called by bin/baton.mjs. */
export async function run(): Promise<void> {
  stopAsSignal();
  // `baton jobs list | head` closes the pipe early, which is no failure.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  // Set and not exited: what was written to a pipe must get out first.
  process.exitCode = await main(process.argv.slice(2), systemTerminal());
}

/** The command line: the table of commands, and the exit code for every way to end. Only needed modules are loaded. */

import { Command, CommanderError } from "commander";
import { stopAsSignal } from "../supervisor/messages.ts";
import { VERSION } from "../platform/version.ts";
import { EXIT, report } from "./failure.ts";
import { below, HELP_LAYOUT, HELP_WIDTH } from "./terminal/help-layout.ts";
import { systemTerminal, type Terminal } from "./terminal/terminal.ts";

const EPILOGUE = [
  "Commands that talk to a node take --url (several with commas) or BATON_URL, and -o table|json|yaml: data goes to stdout, the rest to stderr.",
  "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 refused, 5 node not reachable, 6 drained with jobs left, 78 wrong configuration, 124 took too long.",
];

type AddCommands = (program: Command, terminal: Terminal) => void;
type CommandModule = readonly [names: readonly string[], load: () => Promise<AddCommands>];

const GROUPS: Readonly<Record<string, readonly CommandModule[]>> = {
  Starting: [
    [["init"], async () => (await import("./init/init.ts")).addInitCommand],
    [["demo"], async () => (await import("./demo/demo.ts")).addDemoCommand],
    [["start"], async () => (await import("./process/start.ts")).addStartCommand],
    [["agent"], async () => (await import("./process/agent.ts")).addAgentCommand],
    [["controller"], async () => (await import("./process/controller.ts")).addControllerCommands],
  ],
  Job: [
    [["submit"], async () => (await import("./jobs/submit.ts")).addSubmitCommand],
    [["call"], async () => (await import("./jobs/submit.ts")).addCallCommand],
    [["jobs"], async () => (await import("./jobs/jobs.ts")).addJobsCommands],
    [["queues"], async () => (await import("./jobs/queues.ts")).addQueuesCommands],
    [["schedules"], async () => (await import("./jobs/schedules.ts")).addSchedulesCommands],
    [["import"], async () => (await import("./import/import.ts")).addImportCommands],
  ],
  Cluster: [
    [["top"], async () => (await import("./top/top.ts")).addTopCommand],
    [["status", "tasks"], async () => (await import("./cluster/cluster.ts")).addStatusCommands],
    [["cluster"], async () => (await import("./cluster/cluster.ts")).addClusterCommands],
    [["nodes", "node"], async () => (await import("./cluster/node.ts")).addNodeCommands],
    [["leader", "leaders"], async () => (await import("./cluster/leader.ts")).addLeaderCommand],
    [["events"], async () => (await import("./cluster/events.ts")).addEventsCommand],
  ],
  "Set-up": [
    [["doctor"], async () => (await import("./doctor/doctor.ts")).addDoctorCommand],
    [["config"], async () => (await import("./admin/config.ts")).addConfigCommands],
    [["token"], async () => (await import("./admin/access.ts")).addTokenCommands],
    [["user"], async () => (await import("./admin/access.ts")).addUserCommands],
    [["secret"], async () => (await import("./admin/secret.ts")).addSecretCommands],
    [["completion"], async () => (await import("./completion/completion.ts")).addCompletionCommand],
  ],
};

function isNeeded([names]: CommandModule, [first = "", second, , line = ""]: readonly string[]): boolean {
  if (first === "-V" || first === "--version") return false;
  if (first === "completion") {
    // The command in the line that is completed; a completion script lists all commands.
    const typed = line.trimStart().split(/\s+/)[1] ?? "";
    return second !== "words" || names.includes("completion") || names.includes(typed);
  }
  const modules = Object.values(GROUPS).flat();
  return names.includes(first) || !modules.some(([all]) => all.includes(first));
}

export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const program = new Command("baton")
    .description("A highly available job cluster for TypeScript and Node.js")
    .version(VERSION, "-V, --version")
    .showHelpAfterError("(see --help)")
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
  for (const [group, modules] of Object.entries(GROUPS)) {
    program.commandsGroup(`${group} commands:`);
    const needed = modules.filter((module) => isNeeded(module, args));
    for (const add of await Promise.all(needed.map(([, load]) => load()))) add(program, terminal);
  }
  for (const group of program.commands) if (group.commands.length > 0) group.addHelpCommand(helpCommand());
  try {
    await program.parseAsync([...args], { from: "user" });
    return EXIT.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return report(terminal, error);
  }
}

function helpCommand(): Command {
  return new Command("help").argument("[command]").description("show the help of a command");
}

export async function run(): Promise<void> {
  stopAsSignal();
  // `baton jobs list | head` closes the pipe early, which is no failure.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  // Set and not exited: what was written to a pipe must get out first.
  process.exitCode = await main(process.argv.slice(2), systemTerminal());
}

/** `baton controller`: runs a controller and an agent as two processes, and switches the agent by the role of the controller. */

import { resolve } from "node:path";
import { type Command, Option } from "commander";
import type { Settings } from "../../config/settings.ts";
import { systemRandom } from "../../platform/random.ts";
import type { SupervisorReport } from "../../supervisor/supervisor-report.ts";
import { childTable } from "../cluster/node-text.ts";
import { tokenFrom } from "../admin/credential.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { below } from "../terminal/help-layout.ts";
import { ago } from "../../core/format-figures.ts";
import { facts, OUTPUT_FORMATS, type OutputFormat, print } from "../terminal/output.ts";
import { flagsOf, loadForStart, loadFrom, withSettingsOptions } from "../settings-options.ts";
import { untilStopped } from "./shutdown.ts";
import { say, type Terminal } from "../terminal/terminal.ts";

type Options = Readonly<Record<string, unknown>>;

/** The agent's end, and then the controller's, with what each may take behind its drain. */
const CHILD_SLACK_MS = 8_000;

export function addControllerCommands(program: Command, terminal: Terminal): void {
  const controller = withSettingsOptions(program.command("controller"))
    .description("keep a controller and an agent running, by role")
    .option("--no-agent", "run no agent, also while another node leads")
    .addHelpText(
      "after",
      below(terminal, "All settings: docs/configuration.md, and docs/node-controller.md for what it does."),
    )
    .action(async (options: Options) => control(terminal, options));

  withSettingsOptions(controller.command("status"), ["data"])
    .description("show the node-controller of a data directory and its two processes")
    .addOption(
      new Option("-o, --output <format>", "how to print data").choices(OUTPUT_FORMATS).default("table"),
    )
    // Commander takes what stands behind `status` for the command above it, which has the same options.
    .action(async (_: Options, command: Command) => showStatus(terminal, command.optsWithGlobals()));
}

async function control(terminal: Terminal, options: Options): Promise<void> {
  const loaded = loadForStart(terminal, options).settings;
  const settings: Settings =
    options["agent"] === false
      ? { ...loaded, controller: { ...loaded.controller, moonlight: false } }
      : loaded;
  const [{ Supervisor }, { controllerRoles }, { createLog }] = await Promise.all([
    import("../../supervisor/supervisor.ts"),
    import("../../supervisor/child-commands.ts"),
    import("../../platform/log.ts"),
  ]);
  controllerRoles(settings.roles);
  const config = options["config"] as string | undefined;
  const log = createLog({ ...settings.log, name: settings.name });
  const platform = { clock: terminal.clock, random: systemRandom, log };
  const supervisor = new Supervisor(platform, {
    settings,
    commands: {
      runtime: [process.execPath, ...process.execArgv, process.argv[1]!],
      flags: flagsOf(options, ["roles"]),
      // The agent has no flag for it.
      environment: {
        ...terminal.environment,
        ...(config !== undefined && { BATON_CONFIG: resolve(terminal.cwd, config) }),
      },
      pid: process.pid,
    },
    token: tokenFrom(terminal, {}) ?? null,
  });
  // Before the start: a signal that comes early must find us listening.
  const code = untilStopped(terminal, {
    stop: (options) => supervisor.stop(options),
    leftovers: () => leftovers(supervisor.report()),
    drainTimeoutMs: 2 * (settings.drain.timeoutMs + CHILD_SLACK_MS),
  });
  await supervisor.start();
  const text = `node-controller of ${settings.name} (pid ${process.pid}); its state: baton controller status`;
  say(terminal, text);
  process.exit((await code) || supervisor.exitCode);
}

function leftovers(report: SupervisorReport): string | null {
  const { controller, agent } = report;
  const left = [
    ...(controller.pid === null ? [] : [`controller (pid ${controller.pid})`]),
    ...("pid" in agent && agent.pid !== null ? [`agent (pid ${agent.pid})`] : []),
  ];
  return left.length === 0 ? null : `${left.join(" and ")}, which will be killed`;
}

async function showStatus(terminal: Terminal, options: Options): Promise<void> {
  const { settings } = loadFrom(terminal, options);
  const { readReport } = await import("../../supervisor/supervisor-report.ts");
  const report = readReport(settings.data);
  if (report === null) {
    const hint = "name its directory with --data, or start one with `baton controller`";
    throw new CliFailure(EXIT.notFound, `no node-controller has run in ${settings.data}`, hint);
  }
  print(terminal, options["output"] as OutputFormat, report, () => statusTables(terminal, report));
  if (report.status === "degraded")
    throw new CliFailure(EXIT.failure, "a child keeps crashing and is restarted; see its log");
  if (report.status === "stopped") throw new CliFailure(EXIT.failure, "this node-controller does not run");
}

function statusTables(terminal: Terminal, report: SupervisorReport): string {
  const { agent, role, leader_epoch } = report;
  const epoch = leader_epoch === null ? "" : ` (epoch ${leader_epoch})`;
  const about = facts(terminal, [
    ["node", report.node],
    ["status", report.status],
    ["role", role === null ? "not known yet" : `${role}${epoch}`],
    ["url", report.url],
    ["pid", report.pid],
    ["started", ago(terminal.clock.now(), report.started_at)],
    ["agent", "none" in agent ? agent.none : agent.name],
  ]);
  return `${about}\n\n${childTable(terminal, report)}`;
}

/** The command lines of the two children. */

import type { Settings } from "../config/settings.ts";
import { BatonError } from "../core/errors.ts";
import { AGENT_TOKEN_VARIABLE, SUPERVISOR_VARIABLE } from "./messages.ts";
import type { ChildCommand } from "./supervised-child.ts";

export interface ChildCommandOptions {
  readonly settings: Settings;
  /** Node, and the file that it runs: those of this very process. */
  readonly runtime: readonly string[];
  /** The flags that this command was given, but for `--roles`. */
  readonly flags: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  readonly pid: number;
  /** What the agent shows to the nodes, where the environment has nothing for it. */
  readonly agentToken?: string | null;
}

/** The roles of the controller: what runs jobs is the agent's. */
export function controllerRoles(roles: Settings["roles"]): readonly string[] {
  const kept = roles.filter((role) => role !== "worker" && role !== "function");
  if (kept.length > 0) return kept;
  const message =
    "roles must have gateway or scheduler for a node-controller: its agent does the rest; leave roles out, or use `baton start`";
  throw new BatonError("BAD_CONFIG", message);
}

export function controllerCommand(options: ChildCommandOptions): ChildCommand {
  const [file, ...before] = options.runtime;
  const roles = controllerRoles(options.settings.roles).join(",");
  return {
    file: file!,
    args: [...before, "start", ...options.flags, "--roles", roles],
    environment: {
      ...ours(options),
      ...(options.agentToken && { [AGENT_TOKEN_VARIABLE]: options.agentToken }),
    },
    channel: true,
  };
}

export function agentName({ name }: Pick<Settings, "name">): string {
  return `${name}-worker`;
}

/** Why there is no agent; null if there is one. */
export function noAgentBecause({ controller, tasks, worker }: Settings): string | null {
  if (!controller.moonlight) return "moonlighting is off (controller.moonlight)";
  if (controller.agentCommand.length > 0) return null;
  if (tasks.length === 0) return "there are no tasks for it (tasks, controller.agent_command)";
  return worker.concurrency === 0 ? "it may run nothing (worker.concurrency)" : null;
}

/** All the nodes that are known are named: the one that leads may be any of them. */
export function agentCommand(options: ChildCommandOptions, urls: readonly string[]): ChildCommand {
  const { settings, agentToken } = options;
  const shown = agentToken ? { BATON_TOKEN: agentToken } : {};
  const name = agentName(settings);
  const known = urls.join(",");
  const [file, ...args] = settings.controller.agentCommand.map((part) =>
    part.replaceAll("{urls}", known).replaceAll("{name}", name),
  );
  if (file !== undefined)
    return { file, args, environment: { ...forAgents(options.environment), ...shown }, channel: false };
  const { tasks, worker, log } = settings;
  const [runtime, ...before] = options.runtime;
  return {
    file: runtime!,
    args: [
      ...before,
      "agent",
      `--url=${known}`,
      `--name=${name}`,
      `--concurrency=${worker.concurrency}`,
      `--log-level=${log.level}`,
      `--log-format=${log.format}`,
      ...tasks.flatMap((directory) => ["--tasks", directory]),
      ...(worker.queues.length > 0 ? ["--queues", worker.queues.join(",")] : []),
    ],
    environment: { ...forAgents(ours(options)), ...shown },
    channel: true,
  };
}

/** What only nodes need, and what tasks could tell by accident: with these an agent could do everything. */
const NODES_SECRETS = /^BATON_(?:ACCESS__TOKEN|SECRET|CLUSTER__SECRET|MANAGER__PASS)(?:_FILE)?$/;

function forAgents(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !NODES_SECRETS.test(name)));
}

/** `BATON_LAUNCHER` makes bin/baton.mjs end the process when its channel breaks. */
function ours({ environment, pid }: ChildCommandOptions): NodeJS.ProcessEnv {
  return { ...environment, BATON_LAUNCHER: String(pid), [SUPERVISOR_VARIABLE]: String(pid) };
}

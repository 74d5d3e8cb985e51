/** Builds an agent: all its parts are created and connected here. */

import { extname } from "node:path";
import { Worker as Thread } from "node:worker_threads";
import { JobSpans } from "../jobs/job-spans.ts";
import { loadTaskFolder } from "../jobs/tasks/task-folder.ts";
import { TaskRegistry } from "../jobs/tasks/task-registry.ts";
import { BatonError } from "../core/errors.ts";
import type { NodeName } from "../core/ids.ts";
import type { Clock } from "../platform/clock.ts";
import { createLog, type LogOptions } from "../platform/log.ts";
import { systemRandom } from "../platform/random.ts";
import { openTelemetry } from "../platform/tracing.ts";
import { VERSION } from "../platform/version.ts";
import { Agent, type AgentOptions } from "./agent.ts";
import type { ControllerLinkSettings } from "./controller-link.ts";
import type { OpenLink } from "./link-messages.ts";

export interface OpenAgentOptions extends Pick<AgentOptions, "concurrency" | "drain" | "onDied"> {
  readonly urls: readonly string[];
  /** Shown to the controllers; undefined where none asks for one. */
  readonly token?: string;
  readonly name: string;
  readonly folders: readonly string[];
  /** Empty for all. */
  readonly queues: readonly string[];
  readonly log: Omit<LogOptions, "name" | "destination">;
  readonly clock: Clock;
}

export async function openAgent(options: OpenAgentOptions) {
  const { urls, token, name, folders, queues, clock, concurrency, drain, onDied } = options;
  const tasks = new TaskRegistry();
  for (const folder of folders) for (const task of await loadTaskFolder(folder)) tasks.add(task);
  if (tasks.names().size === 0) {
    const where = folders.length === 0 ? "no folder was given" : `there are none in ${folders.join(", ")}`;
    const message = `an agent needs tasks to run, and ${where}; name a folder with --tasks`;
    throw new BatonError("BAD_TASK", message, { field: "tasks" });
  }
  const logOptions: LogOptions = { ...options.log, format: logFormat(options.log.format), name };
  const log = createLog(logOptions);
  const identity = { name: name as NodeName, incarnation: systemRandom.uuid() };
  const link: ControllerLinkSettings = {
    urls,
    token,
    agent: name,
    capabilities: [...tasks.names()],
    queues: queues.length > 0 ? queues : null,
    version: VERSION,
  };
  const openLink = openLinkThread(link, logOptions);
  const spans = new JobSpans(openTelemetry(VERSION, { warn: (message) => log.warn({}, message) }), name);
  const agent = new Agent({ clock, log, identity }, { tasks, openLink, concurrency, drain, spans, onDied });
  return { agent, log, tasks };
}

/** Settled here for both threads: the other one cannot see whether there is a terminal. */
function logFormat(format: LogOptions["format"]): LogOptions["format"] {
  if (format !== "auto") return format;
  return process.stdout.isTTY ? "pretty" : "json";
}

/** Resolved relative to this module, with its own ending: `.ts` in a checkout, `.js` in the published package. */
const ENTRY = new URL(`./controller-link-main${extname(import.meta.url)}`, import.meta.url);

function openLinkThread(settings: ControllerLinkSettings, log: LogOptions): OpenLink {
  return ({ hear, onDied }) => {
    const thread = new Thread(ENTRY, { workerData: { settings, log } });
    let closed = false;
    thread.on("message", hear);
    thread.on("error", (error) => {
      if (!closed) onDied(error);
    });
    return {
      send: (message) => thread.postMessage(message),
      async close() {
        closed = true;
        await thread.terminate();
      },
    };
  };
}

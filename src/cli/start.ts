/** `baton start`: a node in this process, until a signal. */

import { relative } from "node:path";
import type { Command } from "commander";
import type { Loaded } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { showBanner } from "./banner.ts";
import { choosePort, portInUse } from "./port.ts";
import { loadFrom, withSettingsOptions } from "./settings-options.ts";
import { untilSignalled } from "./shutdown.ts";
import type { Terminal } from "./terminal.ts";
import { say } from "./terminal.ts";

export function addStartCommand(program: Command, terminal: Terminal): void {
  withSettingsOptions(program.command("start"))
    .description("start a node")
    .addHelpText("after", "\nAll settings: docs/configuration.md, or `baton config print`.")
    .action(async (options: Readonly<Record<string, unknown>>) =>
      start(terminal, loadFrom(terminal, options)),
    );
}

async function start(terminal: Terminal, loaded: Loaded): Promise<void> {
  const { settings, explicitPort } = await withFreePort(terminal, loaded);
  // Loaded here and not above: the other commands start in half the time without the whole server.
  const [{ createNode }, { createLog }] = await Promise.all([
    import("../node.ts"),
    import("../platform/log.ts"),
  ]);
  const log = createLog({ ...settings.log, name: settings.name });
  const node = await createNode({ settings, log });
  try {
    await node.start();
  } catch (error) {
    await node.stop({ hurry: true });
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    throw portInUse(settings.http.host, settings.http.port, explicitPort);
  }
  const code = untilSignalled({
    stop: (options) => node.stop(options),
    leftovers: () => leftovers(node.runningJobs()),
    drainTimeoutMs: settings.drain.timeoutMs,
    clock: terminal.clock,
    signals: process,
    say: (text) => say(terminal, text),
  });
  showBanner(terminal, {
    name: settings.name,
    url: node.url,
    data: settings.data,
    tasks: node.tasks(),
    guarantees: node.guarantees,
    command: invocation(terminal),
  });
  // Timers and sockets that a task has left open must not keep a stopped node alive.
  process.exit(await code);
}

async function withFreePort(
  terminal: Terminal,
  { settings, sources }: Loaded,
): Promise<{ settings: Settings; explicitPort: boolean }> {
  const { host, port } = settings.http;
  const explicitPort = sources.get("http.port")?.from !== "default";
  const chosen = await choosePort({ host, port, explicit: explicitPort });
  if (chosen === port) return { settings, explicitPort };
  say(terminal, `port ${port} is in use, taking ${chosen} instead (choose one with --port)`);
  return { settings: { ...settings, http: { ...settings.http, port: chosen } }, explicitPort };
}

function leftovers(running: readonly { readonly id: string; readonly task: string }[]): string | null {
  if (running.length === 0) return null;
  const shown = running.slice(0, 5).map((job) => `${job.id} (${job.task})`);
  const more = running.length > shown.length ? ` and ${running.length - shown.length} more` : "";
  return `${running.length} running ${running.length === 1 ? "job" : "jobs"}, which will be run again: ${shown.join(", ")}${more}`;
}

/** What to type for another command: people in a checkout have no `baton` on their path. */
function invocation(terminal: Terminal): string {
  const script = relative(terminal.cwd, process.argv[1] ?? "");
  return script.endsWith("baton.mjs") && !script.startsWith("..") && !script.includes("node_modules")
    ? `node ${script}`
    : "baton";
}

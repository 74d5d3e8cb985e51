/** `baton start`: runs a node in this process, until a signal. */

import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Command } from "commander";
import type { NodeServices } from "../../api/node-services.ts";
import { fabricOf, isPushed } from "../../config/fabric.ts";
import { withPort, type Loaded } from "../../config/load-settings.ts";
import { ADMIN_TOKEN_FILE } from "../../config/secrets/secret-file.ts";
import { insecurities } from "../../config/secrets/cluster-secret.ts";
import type { Settings } from "../../config/settings.ts";
import type { Clock } from "../../platform/clock.ts";
import { Loop } from "../../platform/loop.ts";
import type { Guarantees } from "../../store/store.ts";
import { showBanner } from "./banner.ts";
import { below } from "../terminal/help-layout.ts";
import { drainText } from "../cluster/node-text.ts";
import { choosePort, portInUse } from "./port.ts";
import { loadForStart, withSettingsOptions } from "../settings-options.ts";
import { leftoverText, reportUncaught, untilStopped } from "./shutdown.ts";
import { say, type Terminal } from "../terminal/terminal.ts";

export function addStartCommand(program: Command, terminal: Terminal): void {
  withSettingsOptions(program.command("start"))
    .description("start a node")
    .addHelpText("after", below(terminal, "All settings: docs/configuration.md, or `baton config print`."))
    .action(async (options: Readonly<Record<string, unknown>>) =>
      start(terminal, loadForStart(terminal, options)),
    );
}

async function start(terminal: Terminal, loaded: Loaded): Promise<void> {
  const { settings, explicitPort } = await withFreePort(terminal, loaded);
  // Loaded here and not above: the other commands start in half the time without the whole server.
  const [{ createNode }, { createLog }, { openControlChannel }] = await Promise.all([
    import("../../node/baton-node.ts"),
    import("../../platform/log.ts"),
    import("../../supervisor/control-channel.ts"),
  ]);
  const log = createLog({ ...settings.log, name: settings.name });
  const line = openControlChannel(settings, terminal.clock);
  const node = await createNode({
    settings,
    log,
    beforeLeading: line?.beforeLeading,
    supervised: line?.supervised,
  });
  reportUncaught(log, () => node.runningJobs());
  const handoffMs = isPushed(settings) ? settings.handoff.hardTimeoutMs : 0;
  let unwanted = false;
  // Before the start: a signal that comes early must find us listening.
  const code = untilStopped(terminal, {
    stop: (options) => {
      unwanted = true;
      return node.stop(options);
    },
    leftovers: () => leftoverText(node.runningJobs()),
    released: () => node.released > 0,
    progress: () => {
      const drain = node.drainProgress();
      return drain && drain.owned > 0 ? drainText({ ...drain, handed_over: drain.handedOver }) : null;
    },
    drainTimeoutMs: Math.max(settings.drain.timeoutMs, handoffMs),
  });
  try {
    await node.start();
  } catch (error) {
    await node.stop({ hurry: true });
    // Called off while it waited for its store: that is what was asked for, and no failure.
    if (unwanted) process.exit(await code);
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    throw portInUse(settings.http.host, settings.http.port, explicitPort);
  }
  void line?.follow(node.url, node.services);
  const warnings = insecurities(settings);
  for (const warning of warnings) log.error({ insecure: true }, warning);
  showBanner(terminal, {
    settings,
    url: node.url,
    tasks: node.tasks(),
    guarantees: node.guarantees,
    peers: fabricOf(settings) === "peers" ? peersText(settings) : null,
    warnings,
    access: accessText(settings, node.guarantees, node.services.access),
  });
  trimMemoryWhenIdle(terminal.clock);
  // Timers and sockets that a task has left open must not keep a stopped node alive.
  process.exit(await code);
}

async function withFreePort(
  terminal: Terminal,
  { settings, sources }: Loaded,
): Promise<{ settings: Settings; explicitPort: boolean }> {
  const { host, port } = settings.http;
  const explicitPort = sources.get("http.port")?.from !== "default";
  const chosen = await choosePort(host, port, explicitPort);
  if (chosen === port) return { settings, explicitPort };
  say(terminal, `port ${port} is in use, taking ${chosen} instead (choose one with --port)`);
  return { settings: withPort(settings, chosen, `free, while ${port} was in use`), explicitPort };
}

/** What callers must know, in words; null where nobody is asked anything. */
function accessText(
  { access, data }: Settings,
  { keepsTokenFile }: Guarantees,
  { open, first }: NonNullable<NodeServices["access"]>,
): string | null {
  if (open) return null;
  if (first?.file) return `an admin token was made: export BATON_TOKEN_FILE=${first.file}`;
  if (first) return `an admin token was made, and is shown only this once: ${first.text}`;
  if (access.token !== "") return "callers show a token; access.token is one with admin";
  // Peers make it when they have found each other.
  const where = keepsTokenFile ? `; the first admin token is in ${join(data, ADMIN_TOKEN_FILE)}` : "";
  return `callers show a token (baton token create)${where}`;
}

function peersText({ name, nodes, join, discover, manager }: Settings): string {
  const others = Object.keys(nodes).filter((each) => each !== name);
  if (others.length > 0) return `with ${others.join(", ")}`;
  if (join.length > 0) return `joins through ${join.join(", ")}`;
  if (discover !== "") return `with the nodes at ${discover}`;
  return manager.addr === "" ? "of this node alone" : `others join at ${manager.addr}`;
}

/** How often a node checks whether it is idle. Shorter, and a quiet moment between two bursts counts as idle. */
const IDLE_CHECK_MS = 5_000;
const IDLE_SHARE = 0.1;
/** Less than this is not worth a pause of about a tenth of a second. */
const GAIN_BYTES_MIN = 24 * 2 ** 20;

type Collect = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void;

/** The runtime keeps memory of the start, or of a burst, for the next burst. An idle node gives it back, once after each. */
function trimMemoryWhenIdle(clock: Clock): void {
  // Not by a flag of the process: it would be one for people to set, and for every child.
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as Collect;
  let cpu = process.cpuUsage();
  let checkedAt = clock.monotonic();
  let kept = 0;
  const check = async (): Promise<number> => {
    const spent = process.cpuUsage(cpu);
    const share = (spent.user + spent.system) / 1_000 / (clock.monotonic() - checkedAt);
    if (share < IDLE_SHARE && process.memoryUsage().heapTotal - kept > GAIN_BYTES_MIN) {
      collect({ type: "major", execution: "sync", flavor: "last-resort" });
      kept = process.memoryUsage().heapTotal;
    }
    cpu = process.cpuUsage();
    checkedAt = clock.monotonic();
    return IDLE_CHECK_MS;
  };
  new Loop(clock, check).start(IDLE_CHECK_MS);
}

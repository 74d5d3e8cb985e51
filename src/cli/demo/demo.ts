/** `baton demo`: a cluster of three nodes on this machine, to try out and break. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import type { BatonClient } from "../../client/baton-client.ts";
import { newSecret } from "../../platform/random.ts";
import type { DemoNodePlan, DemoTasks } from "./demo-plan.ts";
import { DEMO_DRAIN_MS, DEMO_NODES, demoPorts, demoTasks, writeDemoFiles } from "./demo-plan.ts";
import { DemoNode } from "./demo-node.ts";
import type { DemoSeed } from "./demo-seed.ts";
import { seedDemo } from "./demo-seed.ts";
import type { Change, Seen } from "./demo-view.ts";
import { agreedLeader, changes, killCommand } from "./demo-view.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { invocation } from "../invocation.ts";
import { DEFAULT_URL, portNumber } from "../node-options.ts";
import type { Column } from "../terminal/columns.ts";
import { table } from "../terminal/output.ts";
import { untilSignalled } from "../process/shutdown.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { say, styled } from "../terminal/terminal.ts";

const FIRST_PORT = 8420;
const LOOK_MS = 200;
/** A node that takes longer to say who leads is shown as it is. Smaller, and a slow machine sees a table without a leader. */
const GATHER_MS = 30_000;
/** Long enough to see that the others go on without it. */
const RESTART_MS = 5_000;
const ANSWER_MS = 2_000;
const LOG_LINES = 10;

interface DemoOptions {
  readonly port?: number;
  readonly tasks?: readonly string[];
  readonly empty?: boolean;
}

export function addDemoCommand(program: Command, terminal: Terminal): void {
  program
    .command("demo")
    .description("a cluster of three nodes here, to look at and to hurt")
    .option(
      "--port <number>",
      `port of the first node (default ${FIRST_PORT}, or the next free one)`,
      portNumber,
    )
    .option(
      "--tasks <dir>",
      "a directory of task modules, beside the examples. May be repeated.",
      (dir: string, before: readonly string[] | undefined) => [...(before ?? []), dir],
    )
    .option("--empty", "begin without the example jobs and schedules")
    .action((options: DemoOptions) => demo(terminal, options));
}

async function demo(terminal: Terminal, options: DemoOptions): Promise<void> {
  const ports = await demoPorts(options.port ?? FIRST_PORT, options.port !== undefined);
  const directory = mkdtempSync(join(tmpdir(), "baton-demo-"));
  try {
    const tasks = demoTasks(directory);
    const folders = [...tasks.folders, ...(options.tasks ?? []).map((dir) => resolve(terminal.cwd, dir))];
    const plans = writeDemoFiles({ directory, ports, tasks: folders, secret: newSecret() });
    await run(terminal, directory, plans, options.empty ? { ...tasks, seed: null } : tasks);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function run(
  terminal: Terminal,
  directory: string,
  plans: readonly DemoNodePlan[],
  tasks: DemoTasks,
): Promise<void> {
  const { clock } = terminal;
  const over = new AbortController();
  const failed = Promise.withResolvers<never>();
  const answered = new Set<string>();
  const bin = fileURLToPath(new URL("../../../bin/baton.mjs", import.meta.url));
  const nodes = plans.map(
    (plan) =>
      new DemoNode({
        name: plan.name,
        args: [bin, "start", "--config", plan.config],
        cwd: terminal.cwd,
        log: plan.log,
        environment: terminal.environment,
        patienceMs: 2 * DEMO_DRAIN_MS,
        clock,
        onEnd: (how) => void ended(plan, how).catch(failed.reject),
      }),
  );
  const ended = async (plan: DemoNodePlan, how: string): Promise<void> => {
    if (!answered.has(plan.name)) {
      failed.reject(new CliFailure(EXIT.failure, `${plan.name} ended at its start (${how})${logTail(plan)}`));
      return;
    }
    tell(terminal, `${plan.name} ended (${how}) and is started again in ${RESTART_MS / 1_000}s`);
    await clock.sleep(RESTART_MS, over.signal);
    const node = nodes.find(({ name }) => name === plan.name)!;
    await node.stop();
    if (!over.signal.aborted) await node.start();
  };
  const stop = async ({ hurry }: { hurry: boolean }): Promise<void> => {
    over.abort();
    if (hurry) for (const node of nodes) node.hurry();
    await Promise.all(nodes.map((node) => node.stop()));
  };
  const code = untilSignalled({
    stop,
    leftovers: () =>
      nodes.flatMap(({ name, pid }) => (pid === null ? [] : [`${name} (${pid})`])).join(", ") || null,
    drainTimeoutMs: 2 * DEMO_DRAIN_MS,
    clock,
    signals: process,
    say: (text) => say(terminal, text),
  });
  const { BatonClient } = await import("../../client/baton-client.ts");
  const clients = plans.map(({ url }) => new BatonClient({ url, timeoutMs: ANSWER_MS, clock, retry: false }));
  try {
    say(terminal, `starting ${DEMO_NODES.join(", ")} in ${directory}`);
    await Promise.all(nodes.map((node) => node.start()));
    const watching = watch(terminal, plans, nodes, clients, tasks, answered, over.signal);
    const exit = await Promise.race([code, failed.promise, watching.then(() => code)]);
    if (exit !== 0) throw new CliFailure(EXIT.failure, "not all nodes have ended");
  } finally {
    await stop({ hurry: false });
    await Promise.all(clients.map((client) => client.close()));
  }
}

async function watch(
  terminal: Terminal,
  plans: readonly DemoNodePlan[],
  nodes: readonly DemoNode[],
  clients: readonly BatonClient[],
  tasks: DemoTasks,
  answered: Set<string>,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = terminal;
  const showAt = clock.monotonic() + GATHER_MS;
  let before: readonly Seen[] | null = null;
  while (!signal.aborted) {
    const now = await Promise.all(nodes.map((node, index) => look(node, clients[index]!)));
    for (const { name, says } of now) if (says) answered.add(name);
    if (signal.aborted) return;
    if (before !== null) {
      for (const change of changes(before, now)) tell(terminal, withKill(change, now));
      before = now;
    } else {
      const gathered = agreedLeader(now) !== null && now.every(({ says }) => says !== null);
      if (gathered || clock.monotonic() >= showAt) {
        show(terminal, plans, now, tasks);
        before = now;
        // Schedules are the leader's business, and the others may not know its address yet.
        const leads = now.findIndex(({ name }) => name === agreedLeader(now)?.name);
        if (tasks.seed) await begin(terminal, clients[Math.max(leads, 0)]!, tasks.seed);
      }
    }
    await clock.sleep(LOOK_MS, signal);
  }
}

/** A demonstration without example jobs is one all the same. */
async function begin(terminal: Terminal, client: BatonClient, seed: DemoSeed): Promise<void> {
  try {
    await seedDemo(client, seed);
    tell(
      terminal,
      `${seed.jobs.length} jobs and ${seed.schedules.length} schedules to look at (--empty: none)`,
    );
  } catch (error) {
    tell(terminal, `the example jobs were not submitted: ${(error as Error).message}`);
  }
}

async function look(node: DemoNode, client: BatonClient): Promise<Seen> {
  // A process that has ended is not asked: somebody else may listen at its port.
  const status = node.pid === null ? null : await client.status().catch(() => null);
  const { name, pid } = node;
  const says =
    status?.node === name
      ? { role: status.role, leader: status.leader_id, epoch: status.leader_epoch }
      : null;
  return { name, pid, says };
}

function show(
  terminal: Terminal,
  plans: readonly DemoNodePlan[],
  seen: readonly Seen[],
  tasks: DemoTasks,
): void {
  const { err } = terminal;
  const columns: readonly Column<Seen>[] = [
    ["node", ({ name }) => name],
    ["pid", (node) => node.pid],
    ["url", ({ name }) => plans.find((plan) => plan.name === name)?.url],
    ["role", ({ says }) => says?.role.toLowerCase() ?? "no answer"],
    ["leader", ({ says }) => says?.leader],
    ["epoch", ({ says }) => says?.epoch],
  ];
  const leader = agreedLeader(seen);
  const pid = seen.find(({ name }) => name === leader?.name)?.pid;
  const command = invocation(terminal);
  const page = plans[0]!.url;
  const url = page === DEFAULT_URL ? "" : ` --url ${plans[0]!.url}`;
  const label = (text: string): string => styled(err, "dim", text.padEnd(7));
  const lines = [
    "",
    table({ out: err }, columns, seen),
    "",
    leader ? `${leader.name} leads under epoch ${leader.epoch}.` : "No leader that most nodes agree on yet.",
    "",
    `${label("look")} ${styled(err, "bold", `${page}/`)}    (the same on every node)`,
    `${label("submit")} ${command} submit ${tasks.example.task} '${tasks.example.payload}' --wait${url}`,
    ...(pid ? [`${label("kill")} ${killCommand(pid)}    (${leader!.name}, which leads)`] : []),
    `${label("watch")} here, or: ${command} cluster status${url}`,
    `${label("stop")} Ctrl-C`,
    "",
  ];
  for (const line of lines) say(terminal, line === "" ? "" : indented(line));
}

function tell(terminal: Terminal, line: string): void {
  const time = new Date(terminal.clock.now()).toTimeString().slice(0, 8);
  say(terminal, `  ${styled(terminal.err, "dim", time)} ${line}`);
}

/** A new leader is shown with the command that kills it. */
function withKill({ text, leader }: Change, seen: readonly Seen[]): string {
  const pid = seen.find(({ name }) => name === leader)?.pid;
  return pid ? `${text}    ${killCommand(pid)}` : text;
}

function indented(text: string): string {
  return text.replaceAll(/^(?=.)/gm, "  ");
}

function logTail(plan: DemoNodePlan): string {
  try {
    const lines = readFileSync(plan.log, "utf8").trimEnd().split("\n");
    // Where it says what went wrong, and not the end of a stack.
    const from = lines.findLastIndex((line) => line.startsWith("error:"));
    const told = from < 0 ? lines.slice(-LOG_LINES) : lines.slice(from, from + LOG_LINES);
    return `:\n${told.join("\n")}`;
  } catch {
    return "";
  }
}

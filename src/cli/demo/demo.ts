/** `baton demo`: a cluster of three nodes on this machine, to try out and break. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import type { BatonClient } from "../../client/baton-client.ts";
import type { SupervisedChild } from "../../supervisor/supervised-child.ts";
import { newSecret } from "../../platform/random.ts";
import {
  DEMO_DRAIN_MS,
  DEMO_NODES,
  DEMO_RESTART_MS,
  demoChild,
  demoPorts,
  demoTasks,
  writeDemoFiles,
  type DemoNodePlan,
  type DemoSeed,
  type DemoTasks,
} from "./demo-plan.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { invocation } from "../process/banner.ts";
import { DEFAULT_URL, portNumber, repeated } from "../node-options.ts";
import { type Column, table } from "../terminal/output.ts";
import { untilStopped } from "../process/shutdown.ts";
import { ProgressBar } from "../terminal/progress-bar.ts";
import { say, styled, type Terminal } from "../terminal/terminal.ts";

const FIRST_PORT = 8420;
const POLL_MS = 200;
/** A node that takes longer to say who leads is shown as it is. Smaller, and a slow machine sees a table without a leader. */
const GATHER_MS = 30_000;
const ANSWER_MS = 2_000;
const LOG_LINES = 10;

interface DemoNode {
  readonly plan: DemoNodePlan;
  readonly child: SupervisedChild;
  readonly client: BatonClient;
}

interface DemoOptions {
  readonly port?: number;
  readonly tasks?: readonly string[];
  readonly empty?: boolean;
}

export function addDemoCommand(program: Command, terminal: Terminal): void {
  program
    .command("demo")
    .description("a cluster of three nodes here, to try out and break")
    .option(
      "--port <number>",
      `port of the first node (default ${FIRST_PORT}, or the next free one)`,
      portNumber,
    )
    .option(
      "--tasks <dir>",
      "a directory of task modules, in addition to the examples. May be repeated.",
      repeated,
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
  const { BatonClient } = await import("../../client/baton-client.ts");
  const over = new AbortController();
  const failed = Promise.withResolvers<never>();
  const answered = new Set<string>();
  const bin = fileURLToPath(new URL("../../../bin/baton.mjs", import.meta.url));
  const ended = (plan: DemoNodePlan, how: string): void => {
    if (answered.has(plan.name)) {
      const soon = `is started again in ${DEMO_RESTART_MS / 1_000}s`;
      return note(terminal, `${plan.name} ended (${how}) and ${soon}`);
    }
    failed.reject(new CliFailure(EXIT.failure, `${plan.name} ended at its start (${how})${logTail(plan)}`));
  };
  const nodes = plans.map((plan): DemoNode => {
    const args = [bin, "start", "--config", plan.config];
    const child = demoChild(plan, args, terminal, (how) => ended(plan, how));
    const client = new BatonClient({ url: plan.url, timeoutMs: ANSWER_MS, clock, retry: false });
    return { plan, child, client };
  });
  const stop = async ({ hurry }: { hurry: boolean }): Promise<void> => {
    over.abort();
    const killMs = hurry ? DEMO_DRAIN_MS : 2 * DEMO_DRAIN_MS;
    await Promise.all(nodes.map(({ child }) => child.turnOff({ hurryMs: hurry ? 0 : killMs, killMs })));
  };
  const code = untilStopped(terminal, {
    stop,
    leftovers: () => {
      const left = nodes.filter(({ child }) => child.pid !== null);
      return left.map(({ plan, child }) => `${plan.name} (${child.pid})`).join(", ") || null;
    },
    drainTimeoutMs: 2 * DEMO_DRAIN_MS,
  });
  try {
    say(terminal, `starting ${DEMO_NODES.join(", ")} in ${directory}`);
    for (const { child } of nodes) child.turnOn();
    const watching = watch(terminal, nodes, tasks, answered, over.signal);
    const exit = await Promise.race([code, failed.promise, watching.then(() => code)]);
    if (exit !== 0) throw new CliFailure(EXIT.failure, "not all nodes have ended");
    if (answered.size > 0) say(terminal, nextSteps(terminal));
  } finally {
    await stop({ hurry: false });
    await Promise.all(nodes.map(({ client }) => client.close()));
  }
}

async function watch(
  terminal: Terminal,
  nodes: readonly DemoNode[],
  tasks: DemoTasks,
  answered: Set<string>,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = terminal;
  const showAt = clock.monotonic() + GATHER_MS;
  const starting = new ProgressBar(terminal);
  let before: readonly Seen[] | null = null;
  while (!signal.aborted) {
    const now = await Promise.all(nodes.map(stateOf));
    for (const { name, says } of now) if (says) answered.add(name);
    if (signal.aborted) return;
    if (before !== null) {
      for (const change of changes(before, now)) note(terminal, change);
      before = now;
    } else {
      const gathered = agreedLeader(now) !== null && now.every(({ says }) => says !== null);
      if (gathered || clock.monotonic() >= showAt) {
        starting.clear();
        show(terminal, nodes, now, tasks);
        before = now;
        // The leader takes schedules, and the others may not know its address yet.
        const leads = now.findIndex(({ name }) => name === agreedLeader(now)?.name);
        if (tasks.seed) await begin(terminal, nodes[Math.max(leads, 0)]!.client, tasks.seed);
      } else if (terminal.err.isTTY) {
        const ready = now.filter(({ says }) => says !== null).length;
        starting.say(`${ready} of ${now.length} nodes answer`);
      }
    }
    await clock.sleep(POLL_MS, signal);
  }
}

async function begin(terminal: Terminal, client: BatonClient, seed: DemoSeed): Promise<void> {
  try {
    // One by one: each is placed on the next node.
    for (const job of seed.jobs) await client.submit(job);
    for (const schedule of seed.schedules) await client.putSchedule(schedule);
    const what = `${seed.jobs.length} jobs and ${seed.schedules.length} schedules`;
    note(terminal, `${what} to begin with (--empty: none)`);
  } catch (error) {
    note(terminal, `the example jobs were not submitted: ${(error as Error).message}`);
  }
}

async function stateOf({ plan: { name }, child, client }: DemoNode): Promise<Seen> {
  const { pid } = child;
  // A process that has ended is not called: another one may listen at its port.
  const status = pid === null ? null : await client.status().catch(() => null);
  if (status?.node !== name) return { name, pid, says: null };
  return { name, pid, says: { role: status.role, leader: status.leader_id, epoch: status.leader_epoch } };
}

function show(terminal: Terminal, nodes: readonly DemoNode[], seen: readonly Seen[], tasks: DemoTasks): void {
  const { err } = terminal;
  const columns: readonly Column<Seen>[] = [
    ["node", ({ name }) => name],
    ["pid", (node) => node.pid],
    ["url", ({ name }) => nodes.find(({ plan }) => plan.name === name)?.plan.url],
    ["role", ({ says }) => says?.role.toLowerCase() ?? "no answer"],
    ["leader", ({ says }) => says?.leader],
    ["epoch", ({ says }) => says?.epoch],
  ];
  const leader = agreedLeader(seen);
  const pid = seen.find(({ name }) => name === leader?.name)?.pid;
  const command = invocation(terminal);
  const page = nodes[0]!.plan.url;
  const url = page === DEFAULT_URL ? "" : ` --url ${page}`;
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
  say(terminal, lines.join("\n").replaceAll(/^(?=.)/gm, "  "));
}

/** After the demo, whose jobs are gone: a node with tasks of one's own. */
export function nextSteps(terminal: Pick<Terminal, "err" | "cwd">): string {
  const command = invocation(terminal);
  const steps = [
    ["your tasks", `${command} demo --empty --tasks ./tasks    (each file is a task)`],
    ["one node", `${command} start --tasks ./tasks    (keeps its jobs in .baton)`],
    ["a cluster", `${command} start --store postgres://… on each machine; ${command} doctor checks it`],
    ["in code", 'import { createNode } from "batonjs"; see docs/library.md'],
  ] as const;
  const lines = steps.map(([what, how]) => `  ${styled(terminal.err, "dim", what.padEnd(10))} ${how}`);
  return ["", "The demo has ended, and its jobs are gone. What to try next:", ...lines, ""].join("\n");
}

function note(terminal: Terminal, line: string): void {
  const time = new Date(terminal.clock.now()).toTimeString().slice(0, 8);
  say(terminal, `  ${styled(terminal.err, "dim", time)} ${line}`);
}

function logTail(plan: DemoNodePlan): string {
  try {
    const lines = readFileSync(plan.log, "utf8").trimEnd().split("\n");
    // Where it says what went wrong, and not the end of a stack.
    const from = lines.findLastIndex((line) => line.startsWith("error:"));
    const shown = from < 0 ? lines.slice(-LOG_LINES) : lines.slice(from, from + LOG_LINES);
    return `:\n${shown.join("\n")}`;
  } catch {
    return "";
  }
}

/** What the nodes report, the leader that most of them agree on, and the changes. */

export interface Seen {
  readonly name: string;
  readonly pid: number | null;
  /** What the node says; null while it does not answer. */
  readonly says: { role: string; leader: string | null; epoch: number | null } | null;
}

/** Whom more than half of all nodes follow under the same epoch; null if there is nobody. */
export function agreedLeader(
  seen: readonly Seen[],
): { readonly name: string; readonly epoch: number } | null {
  const words = seen.flatMap(({ says }) =>
    says?.leader && says.epoch !== null ? [{ name: says.leader, epoch: says.epoch }] : [],
  );
  const groups = Map.groupBy(words, ({ name, epoch }) => `${epoch} ${name}`);
  for (const group of groups.values()) if (group.length > seen.length / 2) return group[0]!;
  return null;
}

export function changes(before: readonly Seen[], now: readonly Seen[]): string[] {
  const lines = now.flatMap((node) => {
    const was = before.find(({ name }) => name === node.name);
    if (!was || (was.says === null) === (node.says === null)) return [];
    if (node.says !== null) return [`${node.name} answers`];
    return node.pid === null ? [] : [`${node.name} does not answer`];
  });
  const [old, leader] = [agreedLeader(before), agreedLeader(now)];
  if (leader === null) return old === null ? lines : [...lines, "no leader that most nodes agree on"];
  if (leader.name === old?.name && leader.epoch === old.epoch) return lines;
  const pid = now.find(({ name }) => name === leader.name)?.pid;
  const kill = pid ? `    ${killCommand(pid)}` : "";
  return [...lines, `${leader.name} leads under epoch ${leader.epoch}${kill}`];
}

function killCommand(pid: number): string {
  return process.platform === "win32" ? `taskkill /F /PID ${pid}` : `kill -9 ${pid}`;
}

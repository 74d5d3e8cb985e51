/** `baton nodes` and `baton node`: lists the nodes; shows, drains, resumes or removes one of them through any other. */

import type { Command } from "commander";
import { CallError } from "../../client/client-error.ts";
import type { BatonClient, NodeBody } from "../../client/baton-client.ts";
import { durationText } from "../../core/duration.ts";
import {
  confirm,
  type ConfirmOptions,
  connect,
  type NodeOptions,
  withNodeOptions,
  withYes,
} from "../node-options.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { several } from "../../core/format-figures.ts";
import { addClientCommand } from "../client-command.ts";
import { drainText, nodeColumns, nodeSections, nodeText } from "./node-text.ts";
import { print, table } from "../terminal/output.ts";
import { ProgressBar } from "../terminal/progress-bar.ts";
import { isAttended, say, type Terminal } from "../terminal/terminal.ts";

/** Nodes tell how busy they are once a second by default, so looking more often shows nothing new. */
const LOOK_MS = 500;

interface DrainOptions extends NodeOptions, ConfirmOptions {
  readonly wait: boolean;
  readonly watch?: boolean;
}

export function addNodeCommands(program: Command, terminal: Terminal): void {
  addClientCommand(program.command("nodes").description("list the nodes of the cluster"), terminal, {
    usage: "list",
    about: "list nodes, with what they do and how busy they are",
    isDefault: true,
    watch: true,
    call: (client) => client.cluster.nodes(),
    text: ({ nodes }) => [nodesTable(terminal, nodes), ...nodeSections(terminal, nodes)].join("\n\n"),
  });

  const node = program.command("node").description("show a node, drain it, resume it, remove it");

  addClientCommand(node, terminal, {
    usage: "show <node>",
    about: "show everything about a node, and which nodes it reaches",
    call: (client, { name }) => client.cluster.node(name),
    text: (answer) => nodeText(terminal, answer),
  });

  withYes(withNodeOptions(node.command("drain <node>")))
    .description(
      "give a node no more work; it finishes running jobs and stays until it is stopped or resumed",
    )
    .option("--wait", "until no job runs there any more; --timeout then bounds the whole wait", true)
    .option("--no-wait", "only send the request")
    .option("-w, --watch", "print each step in a line of its own, also on a terminal")
    .action((name: string, options: DrainOptions) => drain(terminal, name, options));

  addClientCommand(node, terminal, {
    usage: "resume <node>",
    about: "let a drained node take work again",
    call: (client, { name }) => client.cluster.resume(name),
    text: (_, { name }) => `${name} was asked to take work again`,
  });

  addClientCommand(node, terminal, {
    usage: "remove <node>",
    about: "remove a node from a cluster of peers until it joins again; drain and stop it first",
    question: (name) => `Take ${name} out of the cluster, with the jobs that only it has?`,
    call: (client, { name }) => client.cluster.remove(name),
    text: (_, { name }) => `${name} is no longer in the cluster`,
  });
}

export function nodesTable(terminal: Terminal, nodes: readonly NodeBody[]): string {
  return table(terminal, nodeColumns({ now: terminal.clock.now(), nodes }), nodes);
}

async function drain(terminal: Terminal, name: string, options: DrainOptions): Promise<void> {
  await using client = await connect(terminal, options);
  if (!options.yes && isAttended(terminal)) {
    await confirm(terminal, options, drainQuestion(name, (await client.cluster.nodes()).nodes));
  }
  const asked = await client.cluster.drain(name);
  if (!options.wait) {
    print(terminal, options.output, asked, () => `${name} was asked to drain`);
    return;
  }
  const bar = new ProgressBar(terminal, name);
  try {
    const show = showing(terminal, bar, options.watch ?? false);
    const { node, drain } = await untilDrained(terminal, client, name, options.timeout, show);
    bar.clear();
    const ended = node === null ? "has been stopped" : "is drained: nothing runs there";
    const handed = drain && drain.owned > 0 ? `; ${drainText(drain)}` : "";
    print(terminal, options.output, node ?? asked, () => `${name} ${ended}${handed}`);
    const left = (drain?.released ?? 0) + (drain?.orphaned ?? 0);
    if (left > 0) {
      const hint = "they are not lost and run on; the leader gives them an owner as soon as there is one";
      throw new CliFailure(EXIT.released, `${left} jobs of ${name} found no other owner in time`, hint);
    }
  } finally {
    bar.clear();
  }
}

export function drainQuestion(name: string, nodes: readonly NodeBody[]): string {
  const jobs = nodes.find((node) => node.name === name)?.load.jobs ?? 0;
  const working = nodes.filter((node) => node.status === "active" && node.roles.includes("worker"));
  const alone = working.length === 1 && working[0]!.name === name;
  const rest = alone ? " No other node works: jobs will wait." : "";
  return `Drain ${name}? It finishes ${several(jobs, "running job")} and takes no more.${rest}`;
}

type Drain = NonNullable<NodeBody["drain"]>;

/** The node when nothing runs on it any more, null when it has left the cluster; and how far it was seen to be. */
async function untilDrained(
  terminal: Terminal,
  client: BatonClient,
  name: string,
  timeoutMs: number | undefined,
  show: Show,
): Promise<{ node: NodeBody | null; drain: Drain | null }> {
  const { clock } = terminal;
  const until = timeoutMs === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() + timeoutMs;
  let drainingSince: string | null = null;
  let drain: Drain | null = null;
  for (;;) {
    const node = await client.cluster.node(name).catch((error: unknown) => {
      if (error instanceof CallError && error.status === 404) return null;
      throw error;
    });
    if (node === null) return { node, drain };
    if (node.status === "dead") {
      const message = `${name} died before it was drained`;
      throw new CliFailure(EXIT.failure, message, "other nodes take its jobs over: baton nodes list");
    }
    if (node.status === "draining") {
      const seen = node.last_seen ?? "";
      drainingSince ??= seen;
      drain = node.drain;
      // The count may be older than the status: only what the node has said since then tells that nothing runs.
      if (node.load.jobs === 0 && seen > drainingSince && (drain?.waiting ?? 0) === 0) return { node, drain };
      const handed = drain && drain.owned > 0 ? `; ${drainText(drain)}` : "";
      const left = node.load.jobs + (drain?.waiting ?? 0);
      const note = `${jobsText(node.load.jobs)}${handed}`;
      show(`${name} is draining, ${note}`, { left, note });
    } else if (drainingSince === null) show(`${name} was asked to drain and is ${node.status}`);
    else throw new CliFailure(EXIT.failure, `${name} is ${node.status} again: somebody has resumed it`);
    if (clock.monotonic() >= until) {
      const text = `${name} is not drained after ${durationText(timeoutMs!)}: ${jobsText(node.load.jobs)}`;
      throw new CliFailure(EXIT.timeout, text, "it goes on draining: look with `baton nodes list`");
    }
    await clock.sleep(LOOK_MS);
  }
}

/** `left`: what must still end or change hands, once that is known; `note`: the text without the name. */
type Show = (text: string, draining?: { readonly left: number; readonly note: string }) => void;

function showing(terminal: Terminal, bar: ProgressBar, inLines: boolean): Show {
  let [last, most] = ["", 0];
  return (text, { left, note } = { left: 0, note: text }) => {
    most = Math.max(most, left);
    if (!inLines && terminal.err.isTTY && most > 0) bar.show(most - left, most, note);
    else if (!inLines) bar.say(text);
    else if (text !== last) say(terminal, text);
    last = text;
  };
}

function jobsText(jobs: number): string {
  return jobs === 1 ? "1 job runs" : `${jobs === 0 ? "no" : jobs} jobs run`;
}

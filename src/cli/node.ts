/** `baton node`: ask one node of the cluster, through any of them, to drain or to work again; or take it out. */

import type { Command } from "commander";
import { BatonClientError } from "../client/error.ts";
import type { BatonClient, NodeBody } from "../client/client.ts";
import { formatDuration } from "../config/duration.ts";
import { CliFailure, EXIT } from "./failure.ts";
import type { NodeOptions } from "./node-options.ts";
import { connect, withNodeOptions } from "./node-options.ts";
import { print } from "./output.ts";
import { ProgressLine } from "./progress-line.ts";
import type { Terminal } from "./terminal.ts";
import { say } from "./terminal.ts";

/** Nodes tell how busy they are once a second by default, so looking more often shows nothing new. */
const LOOK_MS = 500;

interface DrainOptions extends NodeOptions {
  readonly wait: boolean;
  readonly watch?: boolean;
}

export function addNodeCommands(program: Command, terminal: Terminal): void {
  const node = program.command("node").description("look at a node, drain it, let it work again, remove it");

  withNodeOptions(node.command("drain"))
    .description(
      "let a node take no more work; it finishes what runs and stays until it is stopped or resumed",
    )
    .argument("<name>", "name of the node")
    .option("--wait", "until nothing runs there any more; --timeout then bounds the whole wait", true)
    .option("--no-wait", "only ask")
    .option("--watch", "tell of every step in a line of its own, also on a terminal")
    .action((name: string, options: DrainOptions) => drain(terminal, name, options));

  withNodeOptions(node.command("resume"))
    .description("let a drained node take work again")
    .argument("<name>", "name of the node")
    .action(async (name: string, options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const answer = await client.cluster.resume(name);
      print(terminal, options.output, answer, () => `${name} was asked to take work again`);
    });

  withNodeOptions(node.command("remove"))
    .description(
      "take a node out of a cluster of peers for good, unless it joins again; drain and stop it first",
    )
    .argument("<name>", "name of the node")
    .action(async (name: string, options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const answer = await client.cluster.remove(name);
      print(terminal, options.output, answer, () => `${name} is no longer in the cluster`);
    });
}

async function drain(terminal: Terminal, name: string, options: DrainOptions): Promise<void> {
  await using client = await connect(terminal, options);
  const asked = await client.cluster.drain(name);
  if (!options.wait) {
    print(terminal, options.output, asked, () => `${name} was asked to drain`);
    return;
  }
  const line = new ProgressLine(terminal);
  try {
    const show = options.watch ? watchLines(terminal) : (text: string) => line.show(text);
    const { node, drain } = await untilDrained(terminal, client, name, options.timeout, show);
    line.clear();
    const ended = node === null ? "has been stopped" : "is drained: nothing runs there";
    const handed = drain && drain.owned > 0 ? `; ${drainText(drain)}` : "";
    print(terminal, options.output, node ?? asked, () => `${name} ${ended}${handed}`);
    const left = (drain?.released ?? 0) + (drain?.orphaned ?? 0);
    if (left > 0) {
      throw new CliFailure(
        EXIT.released,
        `${left} jobs of ${name} found no other owner in time`,
        "they are not lost and run on; the leader gives them an owner as soon as there is one",
      );
    }
  } finally {
    line.clear();
  }
}

type Drain = NonNullable<NodeBody["drain"]>;

/** The node when nothing runs on it any more, null when it has left the cluster; and how far it was seen to be. */
async function untilDrained(
  terminal: Terminal,
  client: BatonClient,
  name: string,
  timeoutMs: number | undefined,
  show: (text: string) => void,
): Promise<{ node: NodeBody | null; drain: Drain | null }> {
  const { clock } = terminal;
  const until = timeoutMs === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() + timeoutMs;
  let drainingSince: string | null = null;
  let drain: Drain | null = null;
  for (;;) {
    const node = await client.cluster.node(name).catch((error: unknown) => {
      if (error instanceof BatonClientError && error.status === 404) return null;
      throw error;
    });
    if (node === null) return { node, drain };
    if (node.status === "dead") {
      throw new CliFailure(
        EXIT.failure,
        `${name} died before it was drained`,
        "other nodes take its jobs over: baton nodes list",
      );
    }
    if (node.status === "draining") {
      const seen = node.last_seen ?? "";
      drainingSince ??= seen;
      drain = node.drain;
      // The count may be older than the status: only what the node has said since then tells that nothing runs.
      if (node.load.jobs === 0 && seen > drainingSince && (drain?.waiting ?? 0) === 0) return { node, drain };
      const handed = drain && drain.owned > 0 ? `; ${drainText(drain)}` : "";
      show(`${name} is draining, ${jobsText(node.load.jobs)}${handed}`);
    } else if (drainingSince === null) show(`${name} was asked to drain and is ${node.status}`);
    else throw new CliFailure(EXIT.failure, `${name} is ${node.status} again: somebody has resumed it`);
    if (clock.monotonic() >= until) {
      throw new CliFailure(
        EXIT.timeout,
        `${name} is not drained after ${formatDuration(timeoutMs!)}: ${jobsText(node.load.jobs)}`,
        "it goes on draining: look with `baton nodes list`",
      );
    }
    await clock.sleep(LOOK_MS);
  }
}

/** Every change in a line of its own. */
function watchLines(terminal: Terminal): (text: string) => void {
  let last = "";
  return (text) => {
    if (text !== last) say(terminal, text);
    last = text;
  };
}

/** What a drain has done with the jobs that the node owned. */
export function drainText(drain: Drain): string {
  const { owned, handed_over: handedOver, finished, waiting, orphaned, released } = drain;
  const parts = [
    `${handedOver} of ${owned} owned ${owned === 1 ? "job" : "jobs"} handed over`,
    ...(finished > 0 ? [`${finished} ended`] : []),
    `${waiting} waiting`,
    `${orphaned} orphaned`,
    ...(released > 0 ? [`${released} released`] : []),
  ];
  return parts.join(", ");
}

function jobsText(jobs: number): string {
  return jobs === 1 ? "1 job runs" : `${jobs === 0 ? "no" : jobs} jobs run`;
}

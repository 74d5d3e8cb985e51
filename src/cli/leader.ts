/** `baton leader`: who leads, under which epoch, since when; and who did before, and why that ended. */

import type { Command } from "commander";
import type { LeaderBody } from "../api/operations/cluster.ts";
import { connect, withNodeOptions } from "./node-options.ts";
import { ago, print, table } from "./output.ts";
import type { Terminal } from "./terminal.ts";
import type { WatchOptions } from "./watch.ts";
import { watched, withWatch } from "./watch.ts";

interface LeaderOptions extends WatchOptions {
  readonly history?: boolean;
}

export function addLeaderCommand(program: Command, terminal: Terminal): void {
  withWatch(withNodeOptions(program.command("leader").alias("leaders")))
    .description("show who leads in each role, and with --history who did")
    .action((options: LeaderOptions) => watched(terminal, options, (page) => leader(page, options)));
}

async function leader(terminal: Terminal, options: LeaderOptions): Promise<void> {
  await using client = await connect(terminal, options);
  const answer = await client.cluster.leaders();
  print(terminal, options.output, answer, () => leadersTable(terminal, answer.leaders));
}

export function leadersTable(terminal: Terminal, leaders: readonly LeaderBody[]): string {
  if (leaders.length === 0) return "nobody leads";
  return table(
    terminal,
    ["role", "node", "epoch", "since", "lease until", "valid"],
    leaders.map((each) => [
      each.role,
      each.node_id,
      String(each.epoch),
      ago(terminal, each.acquired_at),
      each.lease_until,
      each.valid ? "yes" : "no",
    ]),
    { spare: ["lease until"] },
  );
}

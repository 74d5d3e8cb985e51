/** `baton leader`: the current leader, its epoch and since when; and earlier terms with the reason of their end. */

import type { Command } from "commander";
import { Option } from "commander";
import type { LeaderBody } from "../../api/operations/cluster/cluster.ts";
import { several, span } from "../terminal/number-format.ts";
import type { AnswerOf } from "../../api/operation-table.ts";
import { LEADER_ROLES } from "../../core/leadership/term.ts";
import type { LeaderRole } from "../../core/leadership/term.ts";
import { connect, wholeNumber, withNodeOptions } from "../node-options.ts";
import { ago, print, table } from "../terminal/output.ts";
import { plain } from "../terminal/plain-text.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { styled } from "../terminal/terminal.ts";
import type { WatchOptions } from "../terminal/watch.ts";
import { watched, withWatch } from "../terminal/watch.ts";

interface LeaderOptions extends WatchOptions {
  readonly history?: boolean;
  readonly role?: LeaderRole;
  readonly limit: number;
}

export function addLeaderCommand(program: Command, terminal: Terminal): void {
  withWatch(withNodeOptions(program.command("leader").alias("leaders")))
    .description("show who leads in each role, and with --history who did")
    .option("--history", "terms, newest first, with why they ended, and stale writes that were refused")
    .addOption(new Option("--role <role>", "only this role").choices(LEADER_ROLES))
    .option("--limit <number>", "at most so many terms", wholeNumber, 20)
    .action((options: LeaderOptions) => watched(terminal, options, (page) => leader(page, options)));
}

async function leader(terminal: Terminal, options: LeaderOptions): Promise<void> {
  await using client = await connect(terminal, options);
  const { role, limit, output } = options;
  if (options.history) {
    const answer = await client.cluster.leaderHistory({ role, limit });
    print(terminal, output, answer, () => historyText(terminal, answer));
    return;
  }
  const answer = await client.cluster.leaders();
  const leaders = answer.leaders.filter((each) => role === undefined || each.role === role);
  print(terminal, output, { ...answer, leaders }, () => leadersTable(terminal, leaders));
}

function historyText(
  terminal: Terminal,
  { terms, refused }: AnswerOf<"GET /cluster/leaders/history">,
): string {
  const now = terminal.clock.now();
  const rows = terms.map(({ role, epoch, node_id: node, started_at: from, ended_at: to, reason }) => [
    from,
    role,
    String(epoch),
    node,
    to === null ? styled(terminal.out, "green", "leads") : `for ${span(Date.parse(to) - Date.parse(from))}`,
    plain(reason ?? (to === null ? `since ${span(now - Date.parse(from))}` : "")),
  ]);
  const told =
    terms.length === 0
      ? "no term is remembered"
      : table(terminal, ["began", "role", "epoch", "node", "led", "ended because"], rows, {
          spare: ["led", "began"],
          cut: "ended because",
        });
  if (refused.count === 0) return `${told}\n\nno stale write had to be refused`;
  const examples = refused.examples.map((each) => [
    each.at,
    each.node,
    plain(each.what),
    `${each.carried_epoch ?? "-"} → ${each.current_epoch ?? "-"}`,
    each.job_id ?? "",
  ]);
  const title = styled(terminal.out, "bold", `${several(refused.count, "stale write")} refused`);
  return `${told}\n\n${title}\n${table(terminal, ["at", "by", "what", "epoch", "job"], examples, { spare: ["job", "at"], cut: "what" })}`;
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

/** `baton leader`: the current leader, its epoch and since when; and earlier terms with the reason of their end. */

import { type Command, Option } from "commander";
import type { LeaderBody } from "../../api/operations/cluster/cluster.ts";
import type { AnswerOf } from "../../api/operation-table.ts";
import { LEADER_ROLES, type LeaderRole } from "../../core/leadership/term.ts";
import { addClientCommand, type ClientCall } from "../client-command.ts";
import { wholeNumber } from "../node-options.ts";
import { piece, type Shown, section, table } from "../terminal/output.ts";
import { ago, several, span } from "../../core/format-figures.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface LeaderOptions {
  readonly history?: boolean;
  readonly role?: LeaderRole;
  readonly limit: number;
}

export function addLeaderCommand(program: Command, terminal: Terminal): void {
  addClientCommand(program, terminal, {
    usage: "leader",
    about: "show who leads in each role, and with --history who did",
    watch: true,
    setUp: (command) =>
      command
        .alias("leaders")
        .option("--history", "terms, newest first, with why they ended, and stale writes that were refused")
        .addOption(new Option("--role <role>", "only this role").choices(LEADER_ROLES))
        .option("--limit <number>", "maximum number of terms", wholeNumber, 20),
    call: async (client, { options: { history, role, limit } }: ClientCall<LeaderOptions>) => {
      if (history) return client.cluster.leaderHistory({ role, limit });
      const answer = await client.cluster.leaders();
      return {
        ...answer,
        leaders: answer.leaders.filter((each) => role === undefined || each.role === role),
      };
    },
    text: (answer) =>
      "terms" in answer ? historyText(terminal, answer) : leadersTable(terminal, answer.leaders),
  });
}

function historyText(
  terminal: Terminal,
  { terms, refused }: AnswerOf<"GET /cluster/leaders/history">,
): string {
  const now = terminal.clock.now();
  const sinceText = (term: (typeof terms)[number]) => `since ${span(now - Date.parse(term.started_at))}`;
  const termRows = table(
    terminal,
    [
      ["began", ({ started_at: from }) => from, { spare: 1 }],
      ["role", ({ role }) => role],
      ["epoch", ({ epoch }) => epoch],
      ["node", ({ node_id: node }) => node],
      ["led", ({ started_at: from, ended_at: to }) => ledText(from, to), { spare: 2 }],
      ["ended because", (term) => term.reason ?? (term.ended_at ? "" : sinceText(term)), { flexible: true }],
    ],
    terms,
  );
  const past = terms.length === 0 ? "no term is remembered" : termRows;
  if (refused.count === 0) return `${past}\n\nno stale write had to be refused`;
  const examples = table(
    terminal,
    [
      ["at", ({ at }) => at, { spare: 1 }],
      ["by", ({ node }) => node],
      ["what", ({ what }) => what, { flexible: true }],
      ["epoch", (each) => `${each.carried_epoch ?? "-"} → ${each.current_epoch ?? "-"}`],
      ["job", ({ job_id: id }) => id ?? "", { spare: 2 }],
    ],
    refused.examples,
  );
  const title = `${several(refused.count, "stale write")} refused`;
  return [past, ...section(terminal, title, examples)].join("\n\n");
}

function ledText(from: string, to: string | null): Shown {
  return to === null ? piece("leads", "green") : `for ${span(Date.parse(to) - Date.parse(from))}`;
}

export function leadersTable(terminal: Terminal, leaders: readonly LeaderBody[]): string {
  if (leaders.length === 0) return "no leader";
  const now = terminal.clock.now();
  return table(
    terminal,
    [
      ["role", ({ role }) => role],
      ["node", ({ node_id: node }) => node],
      ["epoch", ({ epoch }) => epoch],
      ["since", ({ acquired_at: at }) => ago(now, at)],
      ["lease until", ({ lease_until: at }) => at, { spare: 1 }],
      ["valid", ({ valid }) => (valid ? "yes" : "no")],
    ],
    leaders,
  );
}

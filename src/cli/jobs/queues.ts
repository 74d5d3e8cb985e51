/** `baton queues`: lists, pauses and resumes queues. */

import type { Command } from "commander";
import type { QueueOptions } from "../../client/baton-client.ts";
import type { QueueBody } from "../../api/operations/jobs/queues.ts";
import { addClientCommand, type ClientCall } from "../client-command.ts";
import { type Column, piece, sayPartial, table } from "../terminal/output.ts";
import { count, perSecond, short, since } from "../../core/format-figures.ts";
import type { Terminal } from "../terminal/terminal.ts";

const ALLOW_UNKNOWN = [
  "--allow-unknown",
  "take it although the queue has had no job so far, as before a deploy",
] as const;

export function addQueuesCommands(program: Command, terminal: Terminal): void {
  const queues = program.command("queues").description("list queues, pause and resume them");

  addClientCommand(queues, terminal, {
    usage: "list",
    about: "list queues: how many jobs wait and for how long, how many come and end, how they ended",
    isDefault: true,
    watch: true,
    call: (client) => client.queues(),
    text: ({ queues: rows }) =>
      rows.length === 0
        ? "there are no queues yet; a queue is created by its first job"
        : table(terminal, queueColumns(terminal.clock.now()), rows),
    note: ({ nodes }) => sayPartial(terminal, nodes),
  });

  addClientCommand(queues, terminal, {
    usage: "pause <queue>",
    about: "start no more jobs of a queue; running jobs go on",
    setUp: (command) => command.option(...ALLOW_UNKNOWN),
    call: (client, { name, options }: ClientCall<QueueOptions>) =>
      client.pauseQueue(name, { allowUnknown: options.allowUnknown }),
    text: ({ name }) => `${name} paused`,
    note: ({ nodes }) => sayPartial(terminal, nodes),
  });

  addClientCommand(queues, terminal, {
    usage: "resume <queue>",
    about: "start the jobs of a queue again",
    setUp: (command) => command.option(...ALLOW_UNKNOWN),
    call: (client, { name, options }: ClientCall<QueueOptions>) =>
      client.resumeQueue(name, { allowUnknown: options.allowUnknown }),
    text: ({ name }) => `${name} resumed`,
    note: ({ nodes }) => sayPartial(terminal, nodes),
  });
}

export function queueColumns(now: number, live = false): readonly Column<QueueBody>[] {
  const figure = live ? short : count;
  const right = (width: number, spare = 0) => ({ width, spare, align: "right" }) as const;
  const columns: readonly (Column<QueueBody> | false)[] = [
    [live ? "queues" : "queue", ({ name }) => name, { width: 12, flexible: true }],
    ["state", ({ paused }) => (paused ? piece("paused", "yellow") : "open"), { width: 6 }],
    ["waiting", ({ counts: { queued } }) => piece(figure(queued), queued > 0 ? "cyan" : null), right(7)],
    ["oldest", (queue) => since(now, queue.oldest_waiting_at), right(6, live ? 0 : 1)],
    ["running", ({ counts }) => figure(counts.processing), right(7)],
    ["slots", ({ slots }) => figure(slots), right(5, 4)],
    ["in", (queue) => perSecond(queue.submitted_per_second), right(7, live ? 2 : 0)],
    ["out", (queue) => perSecond(queue.finished_per_second), right(7, live ? 2 : 0)],
    !live && ["scheduled", ({ counts }) => figure(counts.scheduled), right(7, 3)],
    ["failed", ({ counts: { failed } }) => piece(figure(failed), failed > 0 ? "red" : null), right(6)],
    [live ? "done" : "completed", ({ counts }) => figure(counts.completed), right(6, live ? 3 : 2)],
    !live && ["cancelled", ({ counts }) => figure(counts.cancelled), right(7, 5)],
  ];
  return columns.filter((column) => column !== false);
}

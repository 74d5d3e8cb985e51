/** `baton queues`: lists, pauses and resumes queues. */

import type { Command } from "commander";
import type { QueueBody } from "../../api/operations/jobs/queues.ts";
import { count, perSecond, span } from "../terminal/number-format.ts";
import { defaultCommand } from "../command-group.ts";
import type { NodeOptions } from "../node-options.ts";
import { connect, withNodeOptions } from "../node-options.ts";
import { print, table } from "../terminal/output.ts";
import { sayPartial } from "../terminal/partial-answer.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { styled } from "../terminal/terminal.ts";
import type { WatchOptions } from "../terminal/watch.ts";
import { watched, withWatch } from "../terminal/watch.ts";

export function addQueuesCommands(program: Command, terminal: Terminal): void {
  const queues = program.command("queues").description("look at queues, pause and resume them");

  withWatch(withNodeOptions(defaultCommand(queues, "list")))
    .description("list queues: how many wait and for how long, how many come and end, how they ended")
    .action((options: WatchOptions) => watched(terminal, options, (page) => list(page, options)));

  withNodeOptions(queues.command("pause"))
    .description("stop handing out the jobs of a queue; those that run go on")
    .argument("<queue>", "its name")
    .action(async (name: string, options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const answer = await client.pauseQueue(name);
      print(terminal, options.output, answer, () => `${answer.name} paused`);
      sayPartial(terminal, answer.nodes);
    });

  withNodeOptions(queues.command("resume"))
    .description("hand out the jobs of a queue again")
    .argument("<queue>", "its name")
    .action(async (name: string, options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const answer = await client.resumeQueue(name);
      print(terminal, options.output, answer, () => `${answer.name} resumed`);
      sayPartial(terminal, answer.nodes);
    });
}

async function list(terminal: Terminal, options: WatchOptions): Promise<void> {
  await using client = await connect(terminal, options);
  const answer = await client.queues();
  print(terminal, options.output, answer, () => queuesTable(terminal, answer.queues));
  sayPartial(terminal, answer.nodes);
}

function queuesTable(terminal: Terminal, queues: readonly QueueBody[]): string {
  if (queues.length === 0) return "there are no queues yet: one comes into being with its first job";
  const now = terminal.clock.now();
  return table(
    terminal,
    [
      "queue",
      "state",
      "waiting",
      "oldest",
      "running",
      "slots",
      "in",
      "out",
      "scheduled",
      "completed",
      "failed",
      "cancelled",
    ],
    queues.map((queue) => {
      const { counts, oldest_waiting_at: oldest } = queue;
      return [
        queue.name,
        queue.paused ? styled(terminal.out, "yellow", "paused") : "open",
        count(counts.queued),
        oldest ? span(Math.max(0, now - Date.parse(oldest))) : "-",
        count(counts.processing),
        count(queue.slots),
        perSecond(queue.submitted_per_second),
        perSecond(queue.finished_per_second),
        count(counts.scheduled),
        count(counts.completed),
        counts.failed > 0 ? styled(terminal.out, "red", count(counts.failed)) : "0",
        count(counts.cancelled),
      ];
    }),
    { spare: ["cancelled", "slots", "scheduled", "completed", "oldest"] },
  );
}

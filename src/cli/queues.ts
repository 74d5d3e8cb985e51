/** `baton queues`: look at queues, pause and resume them. */

import type { Command } from "commander";
import { JOB_STATUSES } from "../core/job.ts";
import type { NodeOptions } from "./node-options.ts";
import { connect, withNodeOptions } from "./node-options.ts";
import { print, table } from "./output.ts";
import type { Terminal } from "./terminal.ts";

export function addQueuesCommands(program: Command, terminal: Terminal): void {
  const queues = program.command("queues").description("look at queues, pause and resume them");

  withNodeOptions(queues.command("list"))
    .description("list queues with the number of their jobs by status")
    .action(async (options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const answer = await client.queues();
      print(terminal, options.output, answer, () =>
        table(
          terminal,
          ["queue", "paused", ...JOB_STATUSES],
          answer.queues.map((queue) => [
            queue.name,
            queue.paused ? "yes" : "no",
            ...JOB_STATUSES.map((status) => String(queue.counts[status])),
          ]),
        ),
      );
    });

  withNodeOptions(queues.command("pause"))
    .description("stop handing out the jobs of a queue; those that run go on")
    .argument("<queue>")
    .action(async (name: string, options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const answer = await client.pauseQueue(name);
      print(terminal, options.output, answer, () => `${answer.name} paused`);
    });

  withNodeOptions(queues.command("resume"))
    .description("hand out the jobs of a queue again")
    .argument("<queue>")
    .action(async (name: string, options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const answer = await client.resumeQueue(name);
      print(terminal, options.output, answer, () => `${answer.name} resumed`);
    });
}

/** `baton schedules`: manages schedules, which submit jobs at given times. */

import type { Command } from "commander";
import { Option } from "commander";
import type { OccurrenceBody, ScheduleBody } from "../../api/bodies/schedule-body.ts";
import { formatDuration } from "../../config/values/duration.ts";
import { MISSED_POLICIES, OVERLAP_POLICIES } from "../../core/schedules/schedule.ts";
import type { MissedPolicy, OverlapPolicy } from "../../core/schedules/schedule.ts";
import type { ConfirmOptions } from "../terminal/confirm.ts";
import { confirm } from "../terminal/confirm.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { defaultCommand } from "../command-group.ts";
import type { NodeOptions } from "../node-options.ts";
import { connect, duration, wholeNumber, withNodeOptions, withYes } from "../node-options.ts";
import { ago, facts, print, table } from "../terminal/output.ts";
import { readPayload } from "./payload.ts";
import type { JobOptions } from "./submit.ts";
import { jobFields, withJobOptions } from "./submit.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { styled } from "../terminal/terminal.ts";
import type { WatchOptions } from "../terminal/watch.ts";
import { watched, withWatch } from "../terminal/watch.ts";

interface TimingOptions {
  readonly cron?: string;
  readonly every?: number;
  readonly zone?: string;
}

interface AddOptions extends TimingOptions, JobOptions, NodeOptions {
  readonly missed?: MissedPolicy;
  readonly missedMax?: number;
  readonly overlap?: OverlapPolicy;
}

interface PreviewOptions extends TimingOptions, NodeOptions {
  readonly count: number;
}

export function addSchedulesCommands(program: Command, terminal: Terminal): void {
  const schedules = program.command("schedules").description("jobs that are submitted by the clock");

  withWatch(withNodeOptions(defaultCommand(schedules, "list")))
    .description("list schedules, with their timing in words and when they fire next")
    .action((options: WatchOptions) => watched(terminal, options, (page) => list(page, options)));

  withNodeOptions(schedules.command("show"))
    .description("show a schedule, its next fires and its last ones")
    .argument("<schedule>", "its name")
    .action((name: string, options: NodeOptions) => show(terminal, name, options));

  withNodeOptions(withJobOptions(withTiming(schedules.command("add")), "schedule"))
    .description("create a schedule, or replace the one of that name")
    .argument("<name>", "name of the schedule")
    .argument("<task>", "task to run")
    .argument("[json]", "the payload")
    .addOption(new Option("--missed <policy>", "fires missed while no node led").choices(MISSED_POLICIES))
    .option("--missed-max <number>", "most missed fires that run_all makes up for", wholeNumber)
    .addOption(
      new Option("--overlap <policy>", "a fire while the last job is unfinished").choices(OVERLAP_POLICIES),
    )
    .action((name: string, task: string, json: string | undefined, options: AddOptions) =>
      add(terminal, name, task, json, options),
    );

  withYes(withNodeOptions(schedules.command("remove")))
    .description("remove a schedule; jobs that it made stay")
    .argument("<schedule>", "its name")
    .action(async (name: string, options: NodeOptions & ConfirmOptions) => {
      await using client = await connect(terminal, options);
      await confirm(terminal, options, `Remove schedule ${name}?`);
      const answer = await client.removeSchedule(name);
      print(terminal, options.output, answer, () => `${name} removed`);
    });

  withNodeOptions(schedules.command("pause"))
    .description("pass over the fires of a schedule")
    .argument("<schedule>", "its name")
    .action(async (name: string, options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const answer = await client.pauseSchedule(name);
      print(terminal, options.output, answer, () => `${name} paused`);
    });

  withNodeOptions(schedules.command("resume"))
    .description("let a paused schedule fire again")
    .argument("<schedule>", "its name")
    .action(async (name: string, options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const answer = await client.resumeSchedule(name);
      print(terminal, options.output, answer, () => `${name} resumed, next at ${answer.next_at ?? "never"}`);
    });

  withNodeOptions(schedules.command("trigger").alias("run"))
    .description("submit its job now, beside the plan")
    .argument("<schedule>", "its name")
    .action(async (name: string, options: NodeOptions) => {
      await using client = await connect(terminal, options);
      const answer = await client.triggerSchedule(name);
      print(terminal, options.output, answer, () => answer.job_id);
    });

  withNodeOptions(withTiming(schedules.command("preview")))
    .description("show the next fires of a schedule, or of a timing that is not stored")
    .argument("[schedule]", "one that is stored")
    .option("--count <number>", "how many", wholeNumber, 10)
    .action((name: string | undefined, options: PreviewOptions) => preview(terminal, name, options));

  withNodeOptions(schedules.command("history"))
    .description("show which occurrences fired and why others were skipped, newest first")
    .argument("<schedule>", "its name")
    .option("--limit <number>", "at most so many", wholeNumber)
    .action(async (name: string, options: NodeOptions & { readonly limit?: number }) => {
      await using client = await connect(terminal, options);
      const answer = await client.scheduleHistory(name, options.limit);
      print(terminal, options.output, answer, () => historyTable(terminal, answer.occurrences));
    });
}

function withTiming(command: Command): Command {
  return command
    .option("--cron <expression>", "5 or 6 fields, such as '0 9 * * 1-5'")
    .option("--every <duration>", "an interval, such as 15m", duration)
    .option("--zone <name>", "time zone of --cron, such as Europe/Berlin");
}

function requireOneTiming(options: TimingOptions): void {
  if ((options.cron === undefined) === (options.every === undefined)) {
    throw new CliFailure(EXIT.usage, "give exactly one of --cron and --every");
  }
}

async function list(terminal: Terminal, options: NodeOptions): Promise<void> {
  await using client = await connect(terminal, options);
  const answer = await client.schedules();
  print(terminal, options.output, answer, () =>
    answer.schedules.length === 0
      ? "there are no schedules; make one with `baton schedules add`"
      : table(
          terminal,
          ["schedule", "task", "timing", "next", "last", "state"],
          answer.schedules.map((schedule) => [
            schedule.name,
            schedule.task,
            timingText(schedule),
            ago(terminal, schedule.next_at),
            ago(terminal, schedule.last_fired_at),
            schedule.paused ? "paused" : "active",
          ]),
          { cut: "timing", spare: ["last"] },
        ),
  );
}

const SHOWN_FIRES = 5;

async function show(terminal: Terminal, name: string, options: NodeOptions): Promise<void> {
  await using client = await connect(terminal, options);
  const [schedule, { fires }, { occurrences }] = await Promise.all([
    client.schedule(name),
    client.previewStored(name, SHOWN_FIRES),
    client.scheduleHistory(name, SHOWN_FIRES),
  ]);
  print(terminal, options.output, { schedule, fires, occurrences }, () => {
    const title = (text: string): string => styled(terminal.out, "bold", text);
    return [
      facts(terminal, [
        ["schedule", schedule.name],
        ["task", schedule.task],
        ["timing", timingText(schedule)],
        ["written", expressionText(schedule)],
        ["state", schedule.paused ? "paused" : "active"],
        ["queue", `${schedule.queue}, priority ${schedule.priority}`],
        ["missed fires", `${schedule.missed}, at most ${schedule.missed_max}`],
        ["overlap", schedule.overlap],
        ["last job", schedule.last_job_id],
        ["payload", JSON.stringify(schedule.payload)],
      ]),
      [title("Next fires"), ...fires.map((at) => `${at}  ${ago(terminal, at)}`)].join("\n"),
      ...(occurrences.length === 0 ? [] : [`${title("Last fires")}\n${historyTable(terminal, occurrences)}`]),
    ].join("\n\n");
  });
}

function historyTable(terminal: Terminal, occurrences: readonly OccurrenceBody[]): string {
  return table(
    terminal,
    ["at", "outcome", "reason", "job"],
    occurrences.map((each) => [each.at, each.outcome, each.reason ?? "", each.job_id ?? ""]),
  );
}

async function add(
  terminal: Terminal,
  name: string,
  task: string,
  json: string | undefined,
  options: AddOptions,
): Promise<void> {
  requireOneTiming(options);
  const payload = await readPayload(terminal, json, options.payloadFile);
  await using client = await connect(terminal, options);
  const answer = await client.putSchedule({
    name,
    task,
    ...jobFields(options, payload),
    cron: options.cron,
    every_ms: options.every,
    zone: options.zone,
    missed: options.missed,
    missed_max: options.missedMax,
    overlap: options.overlap,
  });
  print(
    terminal,
    options.output,
    answer,
    () => `${name} ${answer.outcome}, next at ${answer.next_at ?? "never"}`,
  );
}

async function preview(terminal: Terminal, name: string | undefined, options: PreviewOptions): Promise<void> {
  const { cron, every, zone, count } = options;
  if (name === undefined) requireOneTiming(options);
  else if (cron !== undefined || every !== undefined || zone !== undefined) {
    throw new CliFailure(EXIT.usage, "give the name of a schedule or a timing, not both");
  }
  await using client = await connect(terminal, options);
  const answer =
    name === undefined
      ? await client.previewSchedule({ cron, every_ms: every, zone, count })
      : await client.previewStored(name, count);
  print(terminal, options.output, answer, () => answer.fires.join("\n"));
}

/** In words; a zone that is not everybody's is among them. */
function timingText({ in_words: words }: Pick<ScheduleBody, "in_words">): string {
  return words;
}

/** As it was written. */
function expressionText({ cron, every_ms: everyMs, zone }: ScheduleBody): string {
  if (everyMs !== null) return `every ${formatDuration(everyMs)}`;
  return `${cron}${zone === null ? "" : ` (${zone})`}`;
}

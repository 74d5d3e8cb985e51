/** `baton schedules`: manages schedules, which submit jobs at given times. */

import { type Command, Option } from "commander";
import type { OccurrenceBody, ScheduleBody } from "../../api/bodies/schedule-body.ts";
import { durationText } from "../../core/duration.ts";
import {
  MISSED_POLICIES,
  type MissedPolicy,
  OVERLAP_POLICIES,
  type OverlapPolicy,
} from "../../core/schedules/schedule.ts";
import { addClientCommand, type ClientCall } from "../client-command.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { duration, wholeNumber } from "../node-options.ts";
import { ago } from "../../core/format-figures.ts";
import { facts, section, table } from "../terminal/output.ts";
import { readPayload } from "./payload.ts";
import { jobFields, type JobOptions, withJobOptions } from "./submit.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface TimingOptions {
  readonly cron?: string;
  readonly every?: number;
  readonly zone?: string;
}

interface AddOptions extends TimingOptions, JobOptions {
  readonly missed?: MissedPolicy;
  readonly missedMax?: number;
  readonly overlap?: OverlapPolicy;
}

interface PreviewOptions extends TimingOptions {
  readonly count: number;
}

const SHOWN_FIRES = 5;

export function addSchedulesCommands(program: Command, terminal: Terminal): void {
  const schedules = program
    .command("schedules")
    .description("manage schedules, which submit jobs by the clock");

  addClientCommand(schedules, terminal, {
    usage: "list",
    about: "list schedules, with their timing in words and when they fire next",
    isDefault: true,
    watch: true,
    call: (client) => client.schedules(),
    text: ({ schedules: rows }) =>
      rows.length === 0
        ? "there are no schedules; make one with `baton schedules add`"
        : schedulesTable(terminal, rows),
  });

  addClientCommand(schedules, terminal, {
    usage: "show <schedule>",
    about: "show a schedule, its next fires and its last ones",
    call: async (client, { name }) => {
      const [schedule, { fires }, { occurrences }] = await Promise.all([
        client.schedule(name),
        client.previewStored(name, SHOWN_FIRES),
        client.scheduleHistory(name, SHOWN_FIRES),
      ]);
      return { schedule, fires, occurrences };
    },
    text: ({ schedule, fires, occurrences }) => {
      const now = terminal.clock.now();
      return [
        facts(terminal, scheduleFacts(schedule)),
        ...section(terminal, "Next fires", fires.map((at) => `${at}  ${ago(now, at)}`).join("\n")),
        ...section(
          terminal,
          "Last fires",
          occurrences.length === 0 ? null : historyTable(terminal, occurrences),
        ),
      ].join("\n\n");
    },
  });

  addClientCommand(schedules, terminal, {
    usage: "add",
    about: "create a schedule, or replace the one of that name",
    setUp: (command) =>
      withJobOptions(withTiming(command), "schedule")
        .argument("<name>", "name of the schedule")
        .argument("<task>", "task to run")
        .argument("[json]", "the payload")
        .addOption(new Option("--missed <policy>", "fires missed while no node led").choices(MISSED_POLICIES))
        .option("--missed-max <number>", "most missed fires that run_all makes up for", wholeNumber)
        .addOption(
          new Option("--overlap <policy>", "a fire while the last job is unfinished").choices(
            OVERLAP_POLICIES,
          ),
        ),
    call: async (client, { name, args: [, task, json], options }: ClientCall<AddOptions>) => {
      requireOneTiming(options);
      const payload = await readPayload(terminal, json, options.payloadFile);
      const { cron, every: every_ms, zone, missed, missedMax: missed_max, overlap } = options;
      const timing = { cron, every_ms, zone, missed, missed_max, overlap };
      return client.putSchedule({ name, task: task!, ...jobFields(options, payload), ...timing });
    },
    text: ({ outcome, next_at: next }, { name }) => `${name} ${outcome}, next at ${next ?? "never"}`,
  });

  addClientCommand(schedules, terminal, {
    usage: "remove <schedule>",
    about: "remove a schedule; its jobs stay",
    question: (name) => `Remove schedule ${name}?`,
    call: (client, { name }) => client.removeSchedule(name),
    text: (_, { name }) => `${name} removed`,
  });

  addClientCommand(schedules, terminal, {
    usage: "pause <schedule>",
    about: "skip the fires of a schedule",
    call: (client, { name }) => client.pauseSchedule(name),
    text: (_, { name }) => `${name} paused`,
  });

  addClientCommand(schedules, terminal, {
    usage: "resume <schedule>",
    about: "let a paused schedule fire again",
    call: (client, { name }) => client.resumeSchedule(name),
    text: ({ next_at: next }, { name }) => `${name} resumed, next at ${next ?? "never"}`,
  });

  addClientCommand(schedules, terminal, {
    usage: "trigger <schedule>",
    about: "submit its job now, outside the schedule",
    setUp: (command) => command.alias("run"),
    call: (client, { name }) => client.triggerSchedule(name),
    text: ({ job_id: id }) => id,
  });

  addClientCommand(schedules, terminal, {
    usage: "preview [schedule]",
    about: "show the next fires of a schedule, or of a timing that is not stored",
    setUp: (command) => withTiming(command).option("--count <number>", "how many", wholeNumber, 10),
    call: async (client, { name, options }: ClientCall<PreviewOptions>) => {
      const { cron, every, zone, count } = options;
      if (name === "") requireOneTiming(options);
      else if (cron !== undefined || every !== undefined || zone !== undefined) {
        throw new CliFailure(EXIT.usage, "give the name of a schedule or a timing, not both");
      }
      return name === ""
        ? client.previewSchedule({ cron, every_ms: every, zone, count })
        : client.previewStored(name, count);
    },
    text: ({ fires }) => fires.join("\n"),
  });

  addClientCommand(schedules, terminal, {
    usage: "history <schedule>",
    about: "show which occurrences fired and why others were skipped, newest first",
    setUp: (command) => command.option("--limit <number>", "maximum number of occurrences", wholeNumber),
    call: (client, { name, options }: ClientCall<{ readonly limit?: number }>) =>
      client.scheduleHistory(name, options.limit),
    text: ({ occurrences }) => historyTable(terminal, occurrences),
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

function schedulesTable(terminal: Terminal, schedules: readonly ScheduleBody[]): string {
  const now = terminal.clock.now();
  return table(
    terminal,
    [
      ["schedule", ({ name }) => name],
      ["task", ({ task }) => task],
      ["timing", ({ in_words: words }) => words, { flexible: true }],
      ["next", ({ next_at: at }) => ago(now, at)],
      ["last", ({ last_fired_at: at }) => ago(now, at), { spare: 1 }],
      ["state", stateText],
    ],
    schedules,
  );
}

const DECLARED: Readonly<Record<ScheduleBody["origin"], string>> = {
  operator: "no",
  code: "in code",
  changed: "in code, and changed by hand",
  dropped: "no longer",
};

function stateText({ paused, origin }: ScheduleBody): string {
  if (origin === "dropped") return "paused, gone from the code";
  const state = paused ? "paused" : "active";
  return origin === "changed" ? `${state}, changed by hand` : state;
}

function scheduleFacts(schedule: ScheduleBody) {
  const { cron, every_ms: everyMs, zone } = schedule;
  const written =
    everyMs !== null ? `every ${durationText(everyMs)}` : `${cron}${zone === null ? "" : ` (${zone})`}`;
  return [
    ["schedule", schedule.name],
    ["task", schedule.task],
    ["timing", schedule.in_words],
    ["written", written],
    ["state", schedule.paused ? "paused" : "active"],
    ["declared", DECLARED[schedule.origin]],
    ["note", schedule.note],
    ["queue", `${schedule.queue}, priority ${schedule.priority}`],
    ["missed fires", `${schedule.missed}, at most ${schedule.missed_max}`],
    ["overlap", schedule.overlap],
    ["last job", schedule.last_job_id],
    ["payload", JSON.stringify(schedule.payload)],
  ] as const;
}

function historyTable(terminal: Terminal, occurrences: readonly OccurrenceBody[]): string {
  return table(
    terminal,
    [
      ["at", ({ at }) => at],
      ["outcome", ({ outcome }) => outcome],
      ["reason", ({ reason }) => reason ?? ""],
      ["job", ({ job_id: id }) => id ?? ""],
    ],
    occurrences,
  );
}

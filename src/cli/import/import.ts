/** `baton import`: submits the waiting jobs of BullMQ or pg-boss to the cluster, and takes over their schedules. */

import type { Command } from "commander";
import type { BatonClient } from "../../client/baton-client.ts";
import { count, several, span, sumOf } from "../../core/format-figures.ts";
import { CliFailure, EXIT } from "../failure.ts";
import {
  confirm,
  type ConfirmOptions,
  connect,
  type NodeOptions,
  withNodeOptions,
  withYes,
} from "../node-options.ts";
import { below } from "../terminal/help-layout.ts";
import { type Column, print, section, table } from "../terminal/output.ts";
import { say, styled, type Terminal } from "../terminal/terminal.ts";
import type { ImportedJobs, ImportResult } from "./importer.ts";
import type { ImportSource } from "./import-source.ts";
import { chosenQueue, NewNames, renamedTask } from "./new-names.ts";

interface ImportOptions extends NodeOptions, ConfirmOptions {
  readonly queue?: readonly (readonly [old: string, name: string])[];
  readonly task?: readonly (readonly [old: string, name: string])[];
  readonly dryRun?: boolean;
}

type Open<Options> = (url: string, queues: readonly string[], options: Options) => Promise<ImportSource>;

const REFUSED_SHOWN = 10;

export function addImportCommands(program: Command, terminal: Terminal): void {
  const group = program.command("import").description("take over the waiting jobs of BullMQ or pg-boss");

  addImport<ImportOptions & { readonly prefix: string }>(
    terminal,
    group
      .command("bullmq <redis-url>")
      .description("import the jobs and job schedulers of BullMQ 5 or 6")
      .option("--prefix <text>", "what its keys in Redis begin with", "bull"),
    async (url, queues, { prefix }) =>
      (await import("./bullmq.ts")).openBullmq(terminal, { url, prefix, queues }),
    "Priorities there begin with 0 and then go down from 1 to 2,097,151; here 1 is -1 and 100 and more are -100.",
  );

  addImport<ImportOptions & { readonly schema: string }>(
    terminal,
    group
      .command("pg-boss <postgres-url>")
      .description("import the jobs and schedules of pg-boss 12.38")
      .option("--schema <name>", "the schema of its tables", "pgboss"),
    async (url, queues, { schema }) =>
      (await import("./pg-boss.ts")).openPgBoss(terminal, { url, schema, queues }),
    "Priorities are the same, from -100 to 100; what is beyond becomes the nearest of these.",
  );
}

function addImport<Options extends ImportOptions>(
  terminal: Terminal,
  command: Command,
  open: Open<Options>,
  priorities: string,
): void {
  withYes(withNodeOptions(command))
    .option("--queue <name[=new]>", "only this queue, here under a new name; repeat it for more", chosenQueue)
    .option(
      "--task <old=new>",
      "the task here for jobs of a name there, also as queue/name or queue/*; repeat it for more",
      renamedTask,
    )
    .option("--dry-run", "only show what would be imported")
    .addHelpText(
      "after",
      below(
        terminal,
        "Nothing is changed or deleted there: stop its workers first, or jobs run twice. Jobs that run there now, and those of flows, are left alone.",
        "Run it again to go on after an interruption, with the same --task: no job and no schedule is imported twice.",
        priorities,
      ),
    )
    .action(async (url: string, options: Options) => {
      const queues = (options.queue ?? []).map(([old]) => old);
      await using source = await open(url, queues, options);
      await importAll(terminal, source, options);
    });
}

async function importAll(terminal: Terminal, source: ImportSource, options: ImportOptions): Promise<void> {
  const { dryRun = false, task = [], queue = [], output } = options;
  for (const { name, mayRun } of source.queues)
    if (mayRun !== null) warn(terminal, `queue ${name}: ${mayRun}`);
  // It may run for long.
  await using client = await connect(terminal, options, {});
  if (!dryRun) {
    const jobs = several(
      sumOf(source.queues, ({ waiting }) => waiting),
      "waiting job",
    );
    const queues = several(source.queues.length, "queue");
    await confirm(terminal, options, `Import ${jobs} and the schedules of ${queues} from ${source.address}?`);
  }
  const since = terminal.clock.monotonic();
  const names = new NewNames(task, queue);
  const { Importer } = await import("./importer.ts");
  const result = await new Importer(terminal, client, source, { names, dryRun }).run();
  print(terminal, output, result, () => tables(terminal, result));
  await sayNotes(terminal, client, result, names);
  finish(terminal, result, terminal.clock.monotonic() - since);
}

function tables(terminal: Terminal, { jobs, schedules, refused, dry_run: dryRun }: ImportResult): string {
  const figures: Column<ImportedJobs>[] = dryRun
    ? [["jobs", ({ found }) => count(found), { align: "right" }]]
    : [
        ["imported", ({ imported }) => count(imported), { align: "right" }],
        ["existed", ({ existed }) => count(existed), { align: "right" }],
      ];
  const columns: Column<ImportedJobs>[] = [
    ["from", ({ from }) => from],
    ["queue", ({ queue }) => queue],
    ["task", ({ task }) => task],
    ...figures,
    ["refused", ({ refused: n }) => count(n), { align: "right" }],
  ];
  const reasons = refused.slice(0, REFUSED_SHOWN).map(({ from, id, message }) => `${from} ${id}: ${message}`);
  return [
    jobs.length === 0 ? "no jobs wait there" : table(terminal, columns, jobs),
    ...(schedules.length === 0
      ? []
      : [
          table(
            terminal,
            [
              ["schedule", ({ schedule }) => schedule],
              ["task", (row) => row.task],
              ["timing", ({ timing }) => timing],
              ["outcome", ({ outcome }) => outcome],
              ["note", ({ message }) => message ?? "", { flexible: true }],
            ],
            schedules,
          ),
        ]),
    ...section(terminal, "Refused", reasons.join("\n")),
  ].join("\n\n");
}

async function sayNotes(
  terminal: Terminal,
  client: BatonClient,
  { jobs, schedules, left }: ImportResult,
  names: NewNames,
): Promise<void> {
  const active = sumOf(left, (each) => each.active);
  const flows = sumOf(left, (each) => each.flows);
  if (active > 0) {
    note(
      terminal,
      `${several(active, "active job")} left alone: let the workers there end them, then run this again`,
    );
  }
  if (flows > 0) {
    note(terminal, `${several(flows, "job")} of flows left alone: let the workers there end them`);
  }
  for (const old of names.unused) note(terminal, `nothing there was named "${old}", as --task says`);
  const known = await knownTasks(client);
  const tasks = new Set([...jobs, ...schedules].map(({ task }) => task));
  for (const task of known === null ? [] : [...tasks].filter((each) => !known.has(each)).sort()) {
    note(
      terminal,
      `no node and no agent knows the task ${task}: its jobs wait for one, or give another with --task`,
    );
  }
}

/** Null where that cannot be told, which is no reason to fail. */
async function knownTasks(client: BatonClient): Promise<ReadonlySet<string> | null> {
  try {
    const [{ nodes }, { agents }] = await Promise.all([client.cluster.nodes(), client.controller.agents()]);
    return new Set([...nodes, ...agents].flatMap(({ capabilities }) => capabilities));
  } catch {
    return null;
  }
}

function finish(
  terminal: Terminal,
  { jobs, schedules, dry_run: dryRun }: ImportResult,
  tookMs: number,
): void {
  const refused = sumOf(jobs, (each) => each.refused);
  const refusedSchedules = schedules.filter(({ outcome }) => outcome === "refused").length;
  if (dryRun) say(terminal, "nothing was imported: this was a dry run");
  else {
    const imported = sumOf(jobs, (each) => each.imported);
    const added = schedules.filter(({ outcome }) => outcome === "imported").length;
    say(
      terminal,
      `${several(imported, "job")} and ${several(added, "schedule")} imported in ${span(tookMs)}`,
    );
  }
  if (refused + refusedSchedules === 0) return;
  const what = `${several(refused, "job")} and ${several(refusedSchedules, "schedule")} cannot be imported`;
  throw new CliFailure(EXIT.failure, what, "mend what is refused above, and run the same command again");
}

function warn(terminal: Terminal, text: string): void {
  say(terminal, `${styled(terminal.err, "yellow", "warning:")} ${text}`);
}

function note(terminal: Terminal, text: string): void {
  say(terminal, `${styled(terminal.err, "cyan", "note:")} ${text}`);
}

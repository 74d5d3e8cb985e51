/**
 * npm run bench -- [table] [sqlite|postgres] [names…] [--quick] [--rounds N] [--scale N] [--before DIR] [--json FILE] [--write] [--check | --record]
 *
 * Each figure stands beside a floor or another system, in the same run, in turns. Absolute times are those of one machine in one hour; the
 * ratio is what to look at, and the CPU time a job before the rates.
 */

import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import type { Chart } from "./chart.ts";
import { ENGINES, openEngine, type Engine, type EngineName } from "./engine.ts";
import { checkRatios, hasRecording, recordRatios } from "./ratios.ts";
import { writeReport } from "./report.ts";
import { endWithSignals } from "./run-scope.ts";
import type { Bench, Scenario } from "./scenario.ts";
import { channels } from "./scenarios/channels.ts";
import { controller } from "./scenarios/controller.ts";
import { drain } from "./scenarios/drain.ts";
import { history } from "./scenarios/history.ts";
import { hints } from "./scenarios/hints.ts";
import { hop } from "./scenarios/hop.ts";
import { http } from "./scenarios/http.ts";
import { idle } from "./scenarios/idle.ts";
import { lone } from "./scenarios/lone.ts";
import { memory } from "./scenarios/memory.ts";
import { operate } from "./scenarios/operate.ts";
import { othersCpu, othersDrain, othersPickUp, othersSnapshot, othersSubmits } from "./scenarios/others.ts";
import { ownership } from "./scenarios/ownership.ts";
import { peers } from "./scenarios/peers.ts";
import { pickUp } from "./scenarios/pick-up.ts";
import { queues } from "./scenarios/queues.ts";
import { recovery } from "./scenarios/recovery.ts";
import { redisJobs } from "./scenarios/redis-jobs.ts";
import { redisLogs } from "./scenarios/redis-logs.ts";
import { start } from "./scenarios/start.ts";
import { bulk, submits } from "./scenarios/submits.ts";
import { table, type StoreRow } from "./table.ts";
import { Workplace } from "./workplace.ts";

const SCENARIOS: readonly Scenario[] = [
  othersDrain,
  othersSubmits,
  othersPickUp,
  othersSnapshot,
  othersCpu,
  submits,
  bulk,
  drain,
  lone,
  pickUp,
  queues,
  recovery,
  redisJobs,
  redisLogs,
  http,
  hop,
  channels,
  peers,
  ownership,
  controller,
  operate,
  memory,
  history,
  idle,
  hints,
  start,
];
/** Those whose ratios are the steadiest, and that take no longer than a few minutes together. */
const GUARDED: readonly Scenario[] = [submits, bulk, drain, lone, http];
const OTHERS: readonly Scenario[] = [othersDrain, othersSubmits, othersPickUp, othersSnapshot, othersCpu];

const options = readArguments();
const workplace = new Workplace();
endWithSignals();

const startedAt = performance.now();
const machine = `Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim()}, load ${loadavg()[0]!.toFixed(1)} at the start`;
const disk = { syncMsBefore: workplace.syncMs(), syncMsAfter: NaN };
say(machine);
say(`4 KiB appended durably in ${disk.syncMsBefore.toFixed(2)} ms`);

const rows: StoreRow[] = [];
const charts = new Map<string, Chart>();
const stores: string[] = [];
for (const name of options.engines) {
  const scenarios = options.scenarios.filter((scenario) => isMeasured(scenario, name));
  if (scenarios.length === 0) continue;
  const engine = await openEngine(name, workplace);
  stores.push(engine.about);
  say(engine.about);
  try {
    for (const scenario of scenarios) await measure(engine, scenario);
  } finally {
    await engine.stop();
  }
}
disk.syncMsAfter = workplace.syncMs();
workplace.remove();

const shown = options.goals ? rows.filter(({ target }) => target) : rows;
const head = `${machine}\n${stores.join("; ")}; 4 KiB appended durably in ${disk.syncMsBefore.toFixed(2)} ms before and ${disk.syncMsAfter.toFixed(2)} ms after the run.`;
console.log(`${head}\n\n${table(shown)}\n`);
const missed = shown.filter(({ target }) => target && !target.met);
const reached = shown.filter(({ target }) => target?.met);
console.log(
  `${reached.length} goals reached, ${missed.length} missed${missed.length > 0 ? `: ${missed.map((row) => `${row.figure.trim()} (${row.store})`).join("; ")}` : ""}.`,
);
if (options.quick) console.log("A quick run: too short to judge by.");
if (options.json)
  writeFileSync(options.json, `${JSON.stringify({ machine, stores, disk, rows: shown }, null, 2)}\n`);
if (options.write) for (const file of writeReport(head, shown, charts)) say(`wrote ${file}`);
if (options.record) recordRatios(rows, options.rounds);
if (options.check && !checkRatios(rows)) process.exitCode = 1;
say(`${((performance.now() - startedAt) / 1_000).toFixed(0)} s in all`);

function isMeasured(scenario: Scenario, engine: EngineName): boolean {
  if (scenario.only && scenario.only !== engine) return false;
  return !options.goals || scenario.goals!.includes(engine);
}

async function measure(engine: Engine, scenario: Scenario): Promise<void> {
  say(`${scenario.name}: ${scenario.about}`);
  const { quick, rounds, scale, before } = options;
  const bench: Bench = {
    quick,
    rounds,
    scale,
    before,
    engine,
    say: (text) => say(`  ${text}`),
    chart: (name, chart) => void charts.set(name, chart),
  };
  const { name } = scenario;
  for (const row of await scenario.run(bench)) rows.push({ store: engine.name, scenario: name, ...row });
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

function readArguments() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      quick: { type: "boolean", default: false },
      rounds: { type: "string" },
      scale: { type: "string", default: "1" },
      before: { type: "string" },
      json: { type: "string" },
      write: { type: "boolean", default: false },
      check: { type: "boolean", default: false },
      record: { type: "boolean", default: false },
    },
  });
  const { quick, write, check, record } = values;
  const guard = check || record;
  const goals = positionals.includes("table");
  const words = positionals.filter((word) => word !== "table");
  const known: string[] = [...ENGINES, ...SCENARIOS.map(({ name }) => name)];
  for (const name of words)
    if (!known.includes(name))
      refuse(`there is no store or scenario ${name}; there are table, ${known.join(", ")}`);
  if (guard && positionals.length > 0)
    refuse("--check and --record measure a fixed set; leave the names out");
  if (check && !hasRecording()) refuse("bench/ratios.json is missing; npm run bench -- --record writes it");
  if (record && quick) refuse("a quick run measures smaller backlogs; record without --quick");
  if (write && (!goals || words.length > 0))
    refuse(
      "--write replaces the results of the page; it needs the whole table: npm run bench -- table --write",
    );
  const rounds = Number(values.rounds ?? (quick ? 2 : 9));
  if (!Number.isInteger(rounds) || rounds < 1) refuse("--rounds must be a whole number from 1 on");
  const scale = Number(values.scale);
  if (!(scale > 0)) refuse("--scale must be a number above 0");
  const chosen = <T>(all: readonly T[], nameOf: (one: T) => string): readonly T[] => {
    const some = all.filter((one) => words.includes(nameOf(one)));
    return some.length > 0 ? some : all;
  };
  const all = guard
    ? GUARDED
    : goals
      ? SCENARIOS.filter((scenario) => scenario.goals)
      : words.some((word) => word.startsWith("others-"))
        ? SCENARIOS
        : SCENARIOS.filter((scenario) => !OTHERS.includes(scenario));
  return {
    ...values,
    engines: chosen(ENGINES, (name) => name),
    scenarios: chosen(all, ({ name }) => name),
    before: values.before === undefined ? null : resolve(values.before),
    rounds,
    scale,
    goals,
  };
}

function refuse(why: string): never {
  process.stderr.write(`${why}\n`);
  process.exit(2);
}

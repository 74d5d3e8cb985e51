/**
 * npm run bench -- [sqlite|postgres] [names…] [--quick] [--rounds N] [--json FILE]
 *
 * Each figure stands beside a floor: the bare statements on the same engine, in the same run, in turns. Absolute times
 * are those of one machine in one hour; the ratio is what to look at, and the CPU time a job before the rates.
 */

import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { ENGINES, openEngine, type Engine } from "./engine.ts";
import type { Bench, Scenario } from "./scenario.ts";
import { bulk } from "./scenarios/bulk.ts";
import { channels } from "./scenarios/channels.ts";
import { controller } from "./scenarios/controller.ts";
import { drain } from "./scenarios/drain.ts";
import { history } from "./scenarios/history.ts";
import { hop } from "./scenarios/hop.ts";
import { http } from "./scenarios/http.ts";
import { idle } from "./scenarios/idle.ts";
import { lone } from "./scenarios/lone.ts";
import { memory } from "./scenarios/memory.ts";
import { operate } from "./scenarios/operate.ts";
import { ownership } from "./scenarios/ownership.ts";
import { peers } from "./scenarios/peers.ts";
import { pickUp } from "./scenarios/pick-up.ts";
import { start } from "./scenarios/start.ts";
import { submits } from "./scenarios/submits.ts";
import { table, type StoreRow } from "./table.ts";
import { Workplace } from "./workplace.ts";

const SCENARIOS: readonly Scenario[] = [
  submits,
  bulk,
  drain,
  lone,
  pickUp,
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
  start,
];

const options = readArguments();
const workplace = new Workplace();
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)
  process.once(signal, () => process.exit(code));

const startedAt = performance.now();
const machine = `Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim()}, load ${loadavg()[0]!.toFixed(1)} at the start`;
const disk = { syncMsBefore: workplace.syncMs(), syncMsAfter: NaN };
say(machine);
say(`4 KiB appended durably in ${disk.syncMsBefore.toFixed(2)} ms`);

const rows: StoreRow[] = [];
const stores: string[] = [];
for (const name of options.engines) {
  const engine = await openEngine(name, workplace);
  stores.push(engine.about);
  say(engine.about);
  try {
    for (const scenario of options.scenarios)
      if (engine.name === "sqlite" || !scenario.embeddedOnly) await measure(engine, scenario);
  } finally {
    await engine.stop();
  }
}
disk.syncMsAfter = workplace.syncMs();
workplace.remove();

const missed = rows.filter((row) => row.target && !row.target.met);
const kept = rows.filter((row) => row.target?.met);
console.log(
  `${machine}\n${stores.join("; ")}; 4 KiB appended durably in ${disk.syncMsBefore.toFixed(2)} ms before and ${disk.syncMsAfter.toFixed(2)} ms after the run.\n\n${table(rows)}\n`,
);
console.log(
  `${kept.length} targets met, ${missed.length} missed${missed.length > 0 ? `: ${missed.map((row) => `${row.figure.trim()} (${row.store})`).join("; ")}` : ""}.`,
);
if (options.quick) console.log("A quick run: too short to judge by.");
if (options.json)
  writeFileSync(options.json, `${JSON.stringify({ machine, stores, disk, rows }, null, 2)}\n`);
say(`${((performance.now() - startedAt) / 1_000).toFixed(0)} s in all`);

async function measure(engine: Engine, scenario: Scenario): Promise<void> {
  say(`${scenario.name}: ${scenario.about}`);
  const bench: Bench = {
    quick: options.quick,
    rounds: options.rounds,
    engine,
    say: (text) => say(`  ${text}`),
  };
  for (const row of await scenario.run(bench)) rows.push({ store: engine.name, ...row });
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
      json: { type: "string" },
    },
  });
  const known: string[] = [...ENGINES, ...SCENARIOS.map(({ name }) => name)];
  for (const name of positionals)
    if (!known.includes(name)) refuse(`there is no store or scenario ${name}; there are ${known.join(", ")}`);
  const rounds = Number(values.rounds ?? (values.quick ? 2 : 9));
  if (!Number.isInteger(rounds) || rounds < 1) refuse("--rounds must be a whole number from 1 on");
  const chosen = <T>(all: readonly T[], nameOf: (one: T) => string): readonly T[] => {
    const some = all.filter((one) => positionals.includes(nameOf(one)));
    return some.length > 0 ? some : all;
  };
  const engines = chosen(ENGINES, (name) => name);
  const scenarios = chosen(SCENARIOS, ({ name }) => name);
  return { engines, scenarios, rounds, quick: values.quick, json: values.json };
}

function refuse(why: string): never {
  process.stderr.write(`${why}\n`);
  process.exit(2);
}

// node src/run.ts [--only a,b] [--scenario x,y] [--rounds 5] [--quick] [--all] [--scale 1] [--add ./adapter.ts] [--before DIR] [--base name] [--out file.json]
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { dirname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { loadEntries } from "./contenders/index.ts";
import type { Bench, Scenario } from "./scenario.ts";
import { drainScenario, history } from "./scenarios/drain.ts";
import { enqueue } from "./scenarios/enqueue.ts";
import { latency } from "./scenarios/latency.ts";
import { machine } from "./scenarios/machine.ts";
import { recover } from "./scenarios/recover.ts";
import { snapshot } from "./scenarios/snapshot.ts";
import { startServers } from "./servers.ts";
import { cpuTotals, num, table } from "./util.ts";

const SCENARIOS: Scenario[] = [machine, enqueue, drainScenario, latency, recover, history, snapshot];
/** Too long for every run; --all or --scenario has them. */
const LONG = ["history", "snapshot"];

const { values: flags } = parseArgs({
  options: {
    only: { type: "string" },
    scenario: { type: "string" },
    rounds: { type: "string" },
    scale: { type: "string", default: "1" },
    quick: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    add: { type: "string", multiple: true, default: [] },
    before: { type: "string" },
    base: { type: "string" },
    out: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

const added = flags.add.map((p) => pathToFileURL(resolve(p)).href);
const before = flags.before && pathToFileURL(resolve(flags.before, "bench/contender.ts")).href;
const all = await loadEntries(added, before);
if (flags.help) {
  console.log("scenarios:\n" + SCENARIOS.map((s) => `  ${s.name.padEnd(10)} ${s.about}`).join("\n"));
  console.log(
    "contenders:\n" +
      all.map((e) => `  ${e.name.padEnd(18)} ${e.kind}, ${e.store}: ${e.settings}`).join("\n"),
  );
  process.exit(0);
}

const pick = (text: string | undefined) =>
  text
    ?.split(",")
    .map((s) => s.trim())
    .filter(Boolean);
const only = pick(flags.only);
const chosen = pick(flags.scenario);
const entries = only
  ? all.filter((e) => only.some((o) => e.name === o || e.kind === o || e.store === o))
  : all;
const scenarios = SCENARIOS.filter((s) =>
  chosen ? chosen.includes(s.name) : flags.all || !LONG.includes(s.name),
);
const unknown = [
  ...(chosen ?? []).filter((c) => !SCENARIOS.some((s) => s.name === c)),
  ...(only ?? []).filter((o) => !all.some((e) => e.name === o || e.kind === o || e.store === o)),
];
if (unknown.length) throw new Error(`unknown: ${unknown.join(", ")} (see --help)`);

const baseName =
  flags.base ??
  entries.find((e) => e.kind === "ours")?.name ??
  entries.find((e) => e.name === "graphile-worker")?.name ??
  entries[0]?.name ??
  "";
const started = Date.now();
const servers = await startServers();
let closing = false;
const close = async (code: number): Promise<never> => {
  if (!closing) {
    closing = true;
    await servers.stop();
  }
  process.exit(code);
};
process.on("SIGINT", () => void close(130));
process.on("SIGTERM", () => void close(143));
process.on("uncaughtException", (e) => {
  console.error(e);
  void close(1);
});
process.on("unhandledRejection", (e) => {
  console.error(e);
  void close(1);
});

await servers.createDatabases(entries.filter((e) => e.store === "postgres").map((e) => e.name));

const version = (name: string): string => {
  try {
    return JSON.parse(readFileSync(new URL(`../node_modules/${name}/package.json`, import.meta.url), "utf8"))
      .version;
  } catch {
    return "?";
  }
};
const packages = ["bullmq", "ioredis", "pg-boss", "graphile-worker", "pg"];
const environment = {
  node: process.version,
  ...servers.versions,
  sqlite: process.versions.sqlite,
  packages: Object.fromEntries(packages.map((p) => [p, version(p)])),
  cpu: `${cpus().length} × ${cpus()[0]?.model}`,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  postgresSettings: servers.postgresSettings,
  rounds: Number(flags.rounds ?? (flags.quick ? 1 : 5)),
  scale: Number(flags.scale),
  quick: flags.quick,
  startedAt: new Date(started).toISOString(),
};
console.log(
  `Node ${environment.node}, Postgres ${servers.versions.postgres} (${servers.postgresSettings.join(", ")}), Redis ${servers.versions.redis}, SQLite ${environment.sqlite}; ${environment.cpu}`,
);

const results: Record<string, unknown> = {};
const texts: string[] = [];
const bench: Bench = {
  servers,
  entries,
  rounds: environment.rounds,
  quick: flags.quick,
  all: flags.all,
  scale: environment.scale,
  log: (text) => console.log(`    ${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s  ${text}`),
  table: (title, header, rows) => {
    const text = `\n### ${title}\n\n${table(header, rows)}\n`;
    texts.push(text);
    console.log(text);
  },
  ratios(what, columns, values) {
    const base = values[baseName];
    if (!base || Object.keys(values).length < 2) return;
    this.table(
      `${what}: multiples of ${baseName}`,
      ["contender", ...columns],
      Object.entries(values).map(([name, v]) => [
        name,
        ...columns.map((_, i) => num((v[i] ?? NaN) / base[i]!, 2)),
      ]),
    );
  },
};

const out = flags.out
  ? resolve(flags.out)
  : resolve(dirname(fileURLToPath(import.meta.url)), "../results/latest.json");
mkdirSync(dirname(out), { recursive: true });
let failed = false;
for (const s of scenarios) {
  console.log(`\n== ${s.name}: ${s.about}`);
  const cpu = cpuTotals();
  const t = Date.now();
  try {
    results[s.name] = await s.run(bench);
  } catch (error) {
    failed = true;
    console.error(`${s.name} failed:`, error);
    results[s.name] = { error: String(error) };
  }
  const now = cpuTotals();
  const took = {
    seconds: (Date.now() - t) / 1000,
    busy: (now.busy - cpu.busy) / (now.total - cpu.total),
    steal: (now.steal - cpu.steal) / (now.total - cpu.total),
    load: loadavg()[0],
  };
  console.log(
    `    took ${took.seconds.toFixed(0)} s; cores ${(took.busy * 100).toFixed(0)} % busy, ${(took.steal * 100).toFixed(1)} % stolen, load ${took.load!.toFixed(1)}`,
  );
  results[`${s.name}:run`] = took;
  writeFileSync(
    out,
    JSON.stringify(
      {
        environment,
        contenders: entries.map(({ name, kind, store, durability, settings }) => ({
          name,
          kind,
          store,
          durability,
          settings,
        })),
        results,
      },
      null,
      1,
    ),
  );
  writeFileSync(out.replace(/\.json$/, ".md"), texts.join("\n"));
}
console.log(`\n${((Date.now() - started) / 1000).toFixed(0)} s in all`);
await close(failed ? 1 : 0);

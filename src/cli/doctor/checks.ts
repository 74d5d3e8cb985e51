/**
 * The checks of `baton doctor`: the facts that each one gathers, and the function that judges them. They run
 * concurrently, each with its own deadline; a check waits for another one only through facts that both need.
 */

import { resolve } from "node:path";
import type { Loaded } from "../../config/load-settings.ts";
import { asksCallers } from "../../config/checks/access-checks.ts";
import { fabricOf } from "../../config/fabric.ts";
import { mayBeFile } from "../../config/sources/environment.ts";
import { secretAdvice } from "../../config/secrets/cluster-secret.ts";
import type { Setting } from "../../config/settings.ts";
import { environmentName, SETTINGS } from "../../config/settings.ts";
import { isPostgresUrl } from "../../config/values/store-url.ts";
import type { BatonError } from "../../core/errors.ts";
import { span } from "../../core/figures.ts";
import type { Clock } from "../../platform/clock.ts";
import { mistakesOf } from "../failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { judgeClocks } from "./clocks.ts";
import type { EtcdMember } from "./etcd.ts";
import { judgeEtcd } from "./etcd.ts";
import type { Finding, Judgement } from "./findings.ts";
import { failed, ok, skipped, warning } from "./findings.ts";
import type { SecretFile } from "./machine.ts";
import {
  directoryFacts,
  judgeDirectory,
  judgeExposure,
  judgeOpenFiles,
  judgePort,
  judgeRuntime,
  judgeSecretFiles,
  modeOf,
  openFilesLimit,
} from "./machine.ts";
import type { NodesAnswer, NoNode } from "./nodes.ts";
import { judgeCluster, judgeReach, judgeSettings } from "./nodes.ts";
import type { PostgresAnswer } from "./postgres.ts";
import { judgePostgres } from "./postgres.ts";
import type { RedisAnswer } from "./redis.ts";
import { judgeRedis } from "./redis.ts";

export interface DoctorContext {
  readonly terminal: Terminal;
  /** Null when the configuration is wrong, or there is none to look at. */
  readonly loaded: Loaded | null;
  /** What is wrong with it; null if nothing is. */
  readonly mistakes: BatonError | null;
  /** Whether the settings are those of a node that is, or shall be, on this machine. */
  readonly local: boolean;
  readonly nodes: () => Promise<NodesAnswer | NoNode | null>;
  readonly database: () => Promise<PostgresAnswer | null>;
  readonly redis: () => Promise<RedisAnswer | null>;
  readonly etcd: () => Promise<readonly EtcdMember[] | null>;
}

export interface Check {
  readonly name: string;
  readonly run: (patient: DoctorContext) => readonly Judgement[] | Promise<readonly Judgement[]>;
}

function noConfiguration({ mistakes }: DoctorContext): readonly Judgement[] {
  if (mistakes) return [skipped("the configuration is wrong, and comes first")];
  return [skipped("no configuration here", "run it where a node's file is, or name one with --config")];
}

export const CHECKS: readonly Check[] = [
  { name: "configuration", run: configuration },
  {
    name: "runtime",
    run: () => [...judgeRuntime(process.versions.node), ...judgeOpenFiles(openFilesLimit())],
  },
  { name: "data", run: data },
  { name: "secrets", run: secrets },
  { name: "exposure", run: exposure },
  { name: "port", run: port },
  { name: "database", run: database },
  { name: "redis", run: redis },
  { name: "etcd", run: etcd },
  { name: "nodes", run: reach },
  { name: "cluster", run: (patient) => withNodes(patient, ({ cluster }) => judgeCluster(cluster)) },
  { name: "settings", run: (patient) => withNodes(patient, ({ settings }) => judgeSettings(settings)) },
  { name: "clocks", run: clocks },
];

function configuration(patient: DoctorContext): readonly Judgement[] {
  const { loaded, mistakes, local } = patient;
  if (mistakes) {
    return mistakesOf(mistakes).map((line) =>
      failed(line, "correct it; docs/configuration.md has every setting"),
    );
  }
  if (loaded === null || !local) return noConfiguration(patient);
  const wrong = secretAdvice(loaded.settings).map(({ message, remedy }) =>
    failed(message, remedy ?? "`baton secret create` makes one"),
  );
  const warnings = loaded.warnings.map(({ message, remedy }) =>
    warning(message, remedy ?? "see docs/configuration.md"),
  );
  if (wrong.length + warnings.length > 0) return [...wrong, ...warnings];
  return [ok(`valid (${loaded.file ?? "no file: defaults and environment"})`)];
}

async function data(patient: DoctorContext): Promise<readonly Judgement[]> {
  const { loaded, local } = patient;
  if (loaded === null || !local) return noConfiguration(patient);
  if (isPostgresUrl(loaded.settings.store))
    return [skipped("jobs are in the database; the node keeps nothing here")];
  if (loaded.settings.store === "memory") {
    return [
      warning("store is memory: all jobs end with the process", "use sqlite or a database for what matters"),
    ];
  }
  return judgeDirectory(await directoryFacts(loaded.settings.data));
}

function secrets(patient: DoctorContext): readonly Judgement[] {
  const { loaded, local, terminal } = patient;
  if (loaded === null || !local) return noConfiguration(patient);
  return judgeSecretFiles(secretFiles(loaded, terminal));
}

/** The configuration file if a secret stands in it, and the files that `*_FILE` variables name. */
function secretFiles({ file, sources, values }: Loaded, { environment, cwd }: Terminal): SecretFile[] {
  const rows = (SETTINGS as readonly Setting[]).filter(mayBeFile);
  const inFile = rows.filter((row) => {
    const value = String(values.get(row.path) ?? "");
    const secret = row.secret ? value !== "" : /:\/\/[^/]*:[^/]*@/.test(value);
    return secret && sources.get(row.path)?.from === "file";
  });
  const named = rows.flatMap((row) =>
    [environmentName(row.path), row.variable].flatMap((name) => {
      const path = name === undefined ? undefined : environment[`${name}_FILE`];
      return path ? [{ path, holds: row.path, mode: modeOf(resolve(cwd, path)) }] : [];
    }),
  );
  if (file === null || inFile.length === 0) return named;
  const holds = inFile.map(({ path }) => path).join(", ");
  return [{ path: file, holds, mode: modeOf(resolve(cwd, file)) }, ...named];
}

function exposure(patient: DoctorContext): readonly Judgement[] {
  const { loaded, local } = patient;
  if (loaded === null || !local) return noConfiguration(patient);
  return judgeExposure({ host: loaded.settings.http.host, asks: asksCallers(loaded.settings) });
}

async function port(patient: DoctorContext): Promise<readonly Judgement[]> {
  const { loaded, local, nodes } = patient;
  if (loaded === null || !local) return noConfiguration(patient);
  const { http, name } = loaded.settings;
  const seen = await nodes();
  const known = seen?.url ? seen.nodes.find((node) => node.name === name && node.fromHere?.ok) : undefined;
  return judgePort({ ...http, name, ownUrl: known?.url ?? null });
}

async function database(patient: DoctorContext): Promise<readonly Judgement[]> {
  const { loaded, database: ask, nodes } = patient;
  if (loaded === null) return noConfiguration(patient);
  if (!isPostgresUrl(loaded.settings.store)) return [skipped(`the store is ${loaded.settings.store}`)];
  let answer: PostgresAnswer | null;
  try {
    answer = await ask();
  } catch (error) {
    return [
      failed(
        `the database cannot be asked: ${(error as Error).message}`,
        "does it run, and can this machine reach it? see --store",
      ),
    ];
  }
  const { connections, schema } = loaded.settings.postgres;
  const seen = await nodes();
  const alive = seen?.url ? seen.nodes.filter((node) => node.alive).length : 0;
  return judgePostgres(answer!.facts, { connections, schema, nodes: Math.max(1, alive) });
}

async function redis(patient: DoctorContext): Promise<readonly Judgement[]> {
  const { loaded, redis: ask } = patient;
  if (loaded === null) return noConfiguration(patient);
  if (loaded.settings.redis.url === "") return [skipped("none is configured")];
  try {
    return judgeRedis((await ask())!.facts);
  } catch (error) {
    return [
      failed(
        `Redis cannot be asked: ${(error as Error).message}`,
        "does it run, and can this machine reach it? see --redis",
      ),
    ];
  }
}

async function etcd(patient: DoctorContext): Promise<readonly Judgement[]> {
  const { loaded, etcd: ask } = patient;
  if (loaded === null) return noConfiguration(patient);
  if (loaded.settings.etcd.url === "") return [skipped("none is configured")];
  return judgeEtcd((await ask())!);
}

async function reach({ nodes, loaded }: DoctorContext): Promise<readonly Judgement[]> {
  const answer = await nodes();
  if (answer === null) return [skipped("no node was named and none answers here", "name one with --url")];
  if (answer.url !== null) return judgeReach(answer.nodes);
  const peers = loaded !== null && fabricOf(loaded.settings) === "peers";
  const remedy = peers
    ? "start the nodes, or name one that runs with --url"
    : "start a node with `baton start`, or name another with --url";
  return answer.reasons.map(({ url, reason, refused }) =>
    refused
      ? failed(`the node at ${url} does not let you in: ${reason}`, LET_IN)
      : failed(`no node answers at ${url}: ${reason}`, remedy),
  );
}

const LET_IN =
  "show a token with the permission read: --token, BATON_TOKEN or BATON_TOKEN_FILE; `baton token create` makes one";

async function withNodes(
  { nodes }: DoctorContext,
  judge: (answer: NodesAnswer) => readonly Judgement[],
): Promise<readonly Judgement[]> {
  const answer = await nodes();
  return answer?.url ? judge(answer) : [skipped("no node answers")];
}

async function clocks({
  nodes,
  database: askDatabase,
  redis: askRedis,
}: DoctorContext): Promise<readonly Judgement[]> {
  const silent = (): null => null;
  const [seen, stored, beside] = await Promise.all([
    nodes(),
    askDatabase().catch(silent),
    askRedis().catch(silent),
  ]);
  const readings = [...(seen?.url ? seen.clocks : []), stored?.clock ?? [], beside?.clock ?? []].flat();
  return judgeClocks(readings);
}

export interface RunChecksOptions {
  readonly clock: Clock;
  readonly deadlineMs: number;
  /** Told of the checks that are still under way. */
  readonly onProgress: (under: readonly string[], done: number) => void;
}

/** In the order of the checks, whichever ends first. */
export async function runChecks(
  checks: readonly Check[],
  patient: DoctorContext,
  { clock, deadlineMs, onProgress }: RunChecksOptions,
): Promise<readonly Finding[]> {
  const under = new Set(checks.map(({ name }) => name));
  onProgress([...under], 0);
  const found = await Promise.all(
    checks.map(async ({ name, run }) => {
      const judgements = await inTime(clock, deadlineMs, async () => run(patient));
      under.delete(name);
      onProgress([...under], checks.length - under.size);
      return judgements.map((judgement): Finding => ({ check: name, ...judgement }));
    }),
  );
  return found.flat();
}

async function inTime(
  clock: Clock,
  deadlineMs: number,
  run: () => Promise<readonly Judgement[]>,
): Promise<readonly Judgement[]> {
  const late = Promise.withResolvers<readonly Judgement[]>();
  const callOff = clock.after(deadlineMs, () =>
    late.resolve([
      failed(
        `no answer within ${span(deadlineMs)}`,
        "something in between swallows it; look longer with --timeout",
      ),
    ]),
  );
  try {
    return await Promise.race([run(), late.promise]);
  } catch (error) {
    return [failed(`the check itself broke: ${String(error)}`, "please report it with this text")];
  } finally {
    callOff();
  }
}

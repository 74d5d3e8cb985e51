/** The checks of `baton doctor`: what each gathers and who judges it. They run concurrently, each with its own deadline. */

import { dirname, resolve } from "node:path";
import type { Loaded } from "../../config/load-settings.ts";
import { asksCallers } from "../../config/checks.ts";
import { fabricOf } from "../../config/fabric.ts";
import { mayBeFile } from "../../config/sources/environment.ts";
import { secretAdvice } from "../../config/secrets/cluster-secret.ts";
import { environmentName, SETTINGS } from "../../config/settings.ts";
import { isPostgresUrl, sqliteFile } from "../../config/values/secret-url.ts";
import type { BatonError } from "../../core/errors.ts";
import { span } from "../../core/format-figures.ts";
import type { Clock } from "../../platform/clock.ts";
import { within } from "../../platform/loop.ts";
import { mistakesOf } from "../failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { judgeClocks } from "./clocks.ts";
import { type EtcdMember, judgeEtcd } from "./etcd.ts";
import { type Answer, failed, type Finding, judged, type Judgement, skipped, warning } from "./findings.ts";
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
  type SecretFile,
} from "./machine.ts";
import { judgeCluster, judgeReach, judgeSettings, type NodesAnswer, type NoNode } from "./nodes.ts";
import { judgePostgres, type PostgresFacts } from "./postgres.ts";
import { judgeRedis, type RedisFacts } from "./redis.ts";

export interface DoctorContext {
  readonly terminal: Terminal;
  readonly loaded: Loaded | null;
  readonly mistakes: BatonError | null;
  readonly nodes: () => Promise<NodesAnswer | NoNode | null>;
  readonly database: () => Promise<Answer<PostgresFacts> | null>;
  readonly redis: () => Promise<Answer<RedisFacts> | null>;
  readonly etcd: () => Promise<readonly EtcdMember[] | null>;
}

type Judgements = readonly Judgement[] | Promise<readonly Judgement[]>;

export type Check = (context: DoctorContext) => Judgements;

function ofSettings(judge: (loaded: Loaded, context: DoctorContext) => Judgements): Check {
  return (context) => {
    if (context.loaded) return judge(context.loaded, context);
    if (context.mistakes) return [skipped("the configuration is wrong, and comes first")];
    return [skipped("no configuration here", "run it where a node's file is, or name one with --config")];
  };
}

function ofNodes(judge: (answer: NodesAnswer) => readonly Judgement[]): Check {
  return async ({ nodes }) => {
    const answer = await nodes();
    return answer?.url ? judge(answer) : [skipped("no node answers")];
  };
}

/** By their names, in the order of the report. */
export const CHECKS: Readonly<Record<string, Check>> = {
  configuration,
  runtime: () => [...judgeRuntime(process.versions.node), ...judgeOpenFiles(openFilesLimit())],
  data: ofSettings(data),
  secrets: ofSettings((loaded, { terminal }) => judgeSecretFiles(secretFiles(loaded, terminal))),
  exposure: ofSettings(({ settings }) =>
    judgeExposure({ host: settings.http.host, asks: asksCallers(settings) }),
  ),
  port: ofSettings(port),
  database: ofSettings(database),
  redis: ofSettings(redis),
  etcd: ofSettings(async ({ settings }, { etcd }) =>
    settings.etcd.url === "" ? [skipped("none is configured")] : judgeEtcd((await etcd())!),
  ),
  nodes: reach,
  cluster: ofNodes(({ cluster }) => judgeCluster(cluster)),
  settings: ofNodes(({ settings }) => judgeSettings(settings)),
  clocks,
};

function configuration(context: DoctorContext): Judgements {
  const { mistakes } = context;
  if (mistakes) {
    const remedy = "correct it; docs/configuration.md has every setting";
    return mistakesOf(mistakes).map((line) => failed(line, remedy));
  }
  return ofSettings(({ settings, warnings, file }) =>
    judged(
      [
        ...secretAdvice(settings).map(({ message, remedy }) =>
          failed(message, remedy ?? "`baton secret create` makes one"),
        ),
        ...warnings.map(({ message, remedy }) => warning(message, remedy ?? "see docs/configuration.md")),
      ],
      `valid (${file ?? "no file: defaults and environment"})`,
    ),
  )(context);
}

async function data({ settings }: Loaded): Promise<readonly Judgement[]> {
  if (isPostgresUrl(settings.store))
    return [skipped("jobs are in the database; the node keeps nothing here")];
  const file = sqliteFile(settings);
  if (file !== null) return judgeDirectory(await directoryFacts(dirname(file)));
  return [
    warning("store is memory: all jobs end with the process", "use sqlite or a database for what matters"),
  ];
}

function secretFiles({ file, sources, values }: Loaded, { environment, cwd }: Terminal): SecretFile[] {
  const rows = SETTINGS.filter(mayBeFile);
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

async function port({ settings: { http, name } }: Loaded, { nodes }: DoctorContext) {
  const seen = await nodes();
  const known = seen?.url ? seen.nodes.find((node) => node.name === name && node.fromHere?.ok) : undefined;
  return judgePort({ ...http, name, ownUrl: known?.url ?? null });
}

async function database({ settings }: Loaded, context: DoctorContext): Promise<readonly Judgement[]> {
  if (!isPostgresUrl(settings.store)) return [skipped(`the store is ${settings.store}`)];
  return asked("the database", "--store", context.database, async (facts) => {
    const seen = await context.nodes();
    const alive = seen?.url ? seen.nodes.filter((node) => node.alive).length : 0;
    return judgePostgres(facts, { ...settings.postgres, nodes: Math.max(1, alive) });
  });
}

async function redis({ settings }: Loaded, context: DoctorContext): Promise<readonly Judgement[]> {
  if (settings.redis.url === "") return [skipped("none is configured")];
  return asked("Redis", "--redis", context.redis, judgeRedis);
}

async function asked<Facts>(
  what: string,
  flag: string,
  ask: () => Promise<Answer<Facts> | null>,
  judge: (facts: Facts) => Judgements,
): Promise<readonly Judgement[]> {
  let answer: Answer<Facts>;
  try {
    answer = (await ask())!;
  } catch (error) {
    const remedy = `does it run, and can this machine reach it? see ${flag}`;
    return [failed(`${what} cannot be asked: ${(error as Error).message}`, remedy)];
  }
  return judge(answer.facts);
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

async function clocks({ nodes, ...context }: DoctorContext): Promise<readonly Judgement[]> {
  const silent = (): null => null;
  const [seen, ...servers] = await Promise.all([
    nodes(),
    context.database().catch(silent),
    context.redis().catch(silent),
  ]);
  return judgeClocks([...(seen?.url ? seen.clocks : []), ...servers.flatMap((each) => each?.clock ?? [])]);
}

/** In the order of the checks, whichever ends first. */
export async function runChecks(
  checks: typeof CHECKS,
  context: DoctorContext,
  clock: Clock,
  deadlineMs: number,
  onProgress: (under: readonly string[]) => void,
): Promise<readonly Finding[]> {
  const under = new Set(Object.keys(checks));
  onProgress([...under]);
  const found = await Promise.all(
    Object.entries(checks).map(async ([name, run]) => {
      const running = (async () => run(context))().catch((error: unknown) => [
        failed(`the check itself broke: ${String(error)}`, "please report it with this text"),
      ]);
      const remedy = "something in between swallows it; look longer with --timeout";
      const late = [failed(`no answer within ${span(deadlineMs)}`, remedy)];
      const judgements = (await within(clock, deadlineMs, running)) ?? late;
      under.delete(name);
      onProgress([...under]);
      return judgements.map((judgement): Finding => ({ check: name, ...judgement }));
    }),
  );
  return found.flat();
}

/** `baton doctor`: checks everything that a cluster depends on, and says what to do. */

import { type Command, InvalidArgumentError } from "commander";
import type { Loaded } from "../../config/load-settings.ts";
import type { Settings } from "../../config/settings.ts";
import { isEverywhere } from "../../config/values/address.ts";
import { isPostgresUrl } from "../../config/values/secret-url.ts";
import { hasCode, nearest } from "../../core/errors.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { below } from "../terminal/help-layout.ts";
import { connect, DEFAULT_URL, type NodeOptions, nodeUrls, withNodeOptions } from "../node-options.ts";
import { print } from "../terminal/output.ts";
import { ProgressBar } from "../terminal/progress-bar.ts";
import { flagsOf, loadQuietly, withSettingsOptions } from "../settings-options.ts";
import { say, type Terminal } from "../terminal/terminal.ts";
import { CHECKS, type DoctorContext, runChecks } from "./checks.ts";
import { askEtcd } from "./etcd.ts";
import { countsOf, type Finding, type Question, reportText, summary } from "./findings.ts";
import { askNodes, type Connect } from "./nodes.ts";
import { askPostgres } from "./postgres.ts";
import { askRedis } from "./redis.ts";

/** Longer than any healthy part takes, short enough to wait for. */
const DEADLINE_MS = 10_000;
/** A check may ask three times in a row, and still tell in its own time what did not answer. */
const CALLS_EACH = 4;

interface DoctorOptions extends NodeOptions, Readonly<Record<string, unknown>> {
  readonly only?: readonly string[];
  readonly problems?: boolean;
}

export function addDoctorCommand(program: Command, terminal: Terminal): void {
  const command = program
    .command("doctor")
    .description("check what the cluster stands on, and say what to do")
    .option("--only <check,check…>", `only these: ${Object.keys(CHECKS).join(", ")}`, checkNames)
    .option("--problems", "leave out what is well");
  withSettingsOptions(withNodeOptions(command), [])
    .addHelpText(
      "after",
      below(
        terminal,
        "Reads the configuration as `baton start` would, and asks the node that it describes, or those of --url. Changes nothing.",
        "Exit code 0 when nothing failed, 1 when something did, 5 when nothing could be reached.",
      ),
    )
    .action((options: DoctorOptions) => doctor(terminal, options));
}

async function doctor(terminal: Terminal, options: DoctorOptions): Promise<void> {
  const deadlineMs = options.timeout ?? DEADLINE_MS;
  const reached = new Map<string, boolean>();
  const context = contextOf(terminal, options, deadlineMs, reached);
  const line = new ProgressBar(terminal);
  const checks = Object.fromEntries(
    Object.entries(CHECKS).filter(([name]) => options.only?.includes(name) ?? true),
  );
  let findings: readonly Finding[];
  try {
    findings = await runChecks(checks, context, terminal.clock, deadlineMs, (under) => {
      const done = Object.keys(checks).length - under.length;
      // Where nobody watches, the report is enough.
      if (terminal.err.isTTY)
        line.say(`${done} of ${done + under.length} checks, still: ${under.join(", ")}`);
    });
  } finally {
    line.clear();
  }
  const shown = options.problems
    ? findings.filter(({ verdict }) => verdict === "warning" || verdict === "failed")
    : findings;
  const counts = countsOf(findings);
  print(terminal, options.output, { ok: counts.failed === 0, counts, findings: shown }, () =>
    shown.length === 0 ? "no problems" : reportText(terminal, shown),
  );
  if (options.output === "table") say(terminal, summary(findings));
  if (reached.size > 0 && ![...reached.values()].includes(true)) {
    throw new CliFailure(EXIT.unreachable, `nothing could be reached: ${[...reached.keys()].join(", ")}`);
  }
  if (counts.failed > 0)
    throw new CliFailure(EXIT.failure, `${counts.failed} failed; see the lines with → for what to do`);
}

function contextOf(
  terminal: Terminal,
  options: DoctorOptions,
  deadlineMs: number,
  reached: Map<string, boolean>,
): DoctorContext {
  const { clock } = terminal;
  const { loaded: found, mistakes } = read(terminal, options);
  const named = options.url !== undefined || !!terminal.environment["BATON_URL"];
  // Settings that are nothing but defaults say nothing about a node that was named by its address.
  const isTold = found !== null && (found.file !== null || flagsOf(options, []).length > 0 || !named);
  const loaded = isTold ? found : null;
  const server = <Answer>(
    name: string,
    urlIn: (settings: Settings) => string,
    ask: (question: Question, settings: Settings) => Promise<Answer>,
    answered: (answer: Answer) => boolean = () => true,
  ): (() => Promise<Answer | null>) =>
    once(async () => {
      const url = loaded === null ? "" : urlIn(loaded.settings);
      if (url === "") return null;
      reached.set(name, false);
      const answer = await ask({ url, clock, deadlineMs: deadlineMs * 0.8 }, loaded!.settings);
      reached.set(name, answered(answer));
      return answer;
    });
  return {
    terminal,
    loaded,
    mistakes,
    nodes: once(async () => {
      const { urls, sure } = named ? { urls: nodeUrls(terminal, options), sure: true } : urlsOf(found);
      const timeout = Math.ceil(deadlineMs / CALLS_EACH);
      const { token } = options;
      // Each call once: what is asked for is how that very node fares.
      const at: Connect = (url, as) =>
        connect(terminal, { url, timeout, token: as === "anybody" ? null : token }, { retry: false });
      const answer = await askNodes(urls, at, clock);
      if (answer.url === null && !sure) return null;
      reached.set("nodes", answer.url !== null);
      return answer;
    }),
    database: server(
      "the database",
      ({ store }) => (isPostgresUrl(store) ? store : ""),
      (question, { postgres: { schema } }) => askPostgres(question, schema),
    ),
    redis: server("Redis", ({ redis }) => redis.url, askRedis),
    etcd: server(
      "etcd",
      ({ etcd }) => etcd.url,
      askEtcd,
      (members) => members.some(({ version }) => version !== null),
    ),
  };
}

function read(terminal: Terminal, options: DoctorOptions): Pick<DoctorContext, "loaded" | "mistakes"> {
  try {
    return { loaded: loadQuietly(terminal, options), mistakes: null };
  } catch (error) {
    if (hasCode(error, "BAD_CONFIG")) return { loaded: null, mistakes: error };
    throw error;
  }
}

/** Where the configuration says that nodes are. `sure`: it names others, so that somebody should answer. */
function urlsOf(loaded: Loaded | null): { urls: readonly string[]; sure: boolean } {
  if (loaded === null) return { urls: [DEFAULT_URL], sure: false };
  const { http, nodes } = loaded.settings;
  const host = isEverywhere(http.host) ? "127.0.0.1" : http.host;
  const own = `http://${host.includes(":") ? `[${host}]` : host}:${http.port}`;
  const others = Object.values(nodes);
  return { urls: [...new Set([...(http.port === 0 ? [] : [own]), ...others])], sure: others.length > 0 };
}

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | null = null;
  return () => (asked ??= ask());
}

function checkNames(text: string): readonly string[] {
  const known = Object.keys(CHECKS);
  return text.split(",").map((each) => {
    const name = each.trim();
    if (known.includes(name)) return name;
    const guess = nearest(name, known);
    throw new InvalidArgumentError(`There is no check ${name}${guess ? `; did you mean ${guess}?` : "."}`);
  });
}

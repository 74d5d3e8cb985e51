/** `baton doctor`: checks everything that a cluster depends on, and says what to do. */

import type { Command } from "commander";
import { InvalidArgumentError } from "commander";
import { listenerOf } from "../../config/values/node-map.ts";
import type { Loaded } from "../../config/load-settings.ts";
import { isEverywhere } from "../../config/values/address.ts";
import { isPostgresUrl } from "../../config/values/store-url.ts";
import { hasCode, nearest } from "../../core/errors.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { below } from "../terminal/help-layout.ts";
import type { NodeOptions } from "../node-options.ts";
import { connectTo, DEFAULT_URL, nodeUrls, withNodeOptions } from "../node-options.ts";
import { print } from "../terminal/output.ts";
import { ProgressLine } from "../terminal/progress-bar.ts";
import { flagsOf, loadQuietly, withSettingsOptions } from "../settings-options.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { say } from "../terminal/terminal.ts";
import type { DoctorContext } from "./checks.ts";
import { CHECKS, runChecks } from "./checks.ts";
import { askEtcd } from "./etcd.ts";
import type { Finding } from "./findings.ts";
import { countsOf, reportText, summary } from "./findings.ts";
import { askNodes, type NodesQuestion } from "./nodes.ts";
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
    .option("--only <check,check…>", `only these: ${CHECKS.map(({ name }) => name).join(", ")}`, checkNames)
    .option("--problems", "leave out what is well");
  withSettingsOptions(withNodeOptions(command))
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
  const patient = patientOf(terminal, options, deadlineMs, reached);
  const line = new ProgressLine(terminal);
  let findings: readonly Finding[];
  try {
    findings = await runChecks(
      CHECKS.filter(({ name }) => options.only?.includes(name) ?? true),
      patient,
      {
        clock: terminal.clock,
        deadlineMs,
        // Where nobody watches, the report is enough.
        onProgress: (under, done) => {
          if (terminal.err.isTTY)
            line.show(`${done} of ${done + under.length} checks, still: ${under.join(", ")}`);
        },
      },
    );
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

/** Each part is asked once, however many checks need it. */
function patientOf(
  terminal: Terminal,
  options: DoctorOptions,
  deadlineMs: number,
  reached: Map<string, boolean>,
): DoctorContext {
  const { clock } = terminal;
  const { loaded, mistakes } = read(terminal, options);
  const named = options.url !== undefined || !!terminal.environment["BATON_URL"];
  const told = loaded !== null && (loaded.file !== null || flagsOf(options, []).length > 0 || !named);
  const noted = <T>(name: string, asking: Promise<T>, was: (answer: T) => boolean): Promise<T> =>
    asking.then(
      (answer) => (reached.set(name, was(answer)), answer),
      (error: unknown) => (reached.set(name, false), Promise.reject(error)),
    );
  return {
    terminal,
    loaded: told ? loaded : null,
    mistakes,
    local: told,
    nodes: once(async () => {
      const { urls, sure } = named ? { urls: nodeUrls(terminal, options), sure: true } : urlsOf(loaded);
      const timeout = Math.ceil(deadlineMs / CALLS_EACH);
      const { token } = options;
      const connect: NodesQuestion["connect"] = (url, as) =>
        connectTo(terminal, { timeout, token: as === "anybody" ? null : token }, url);
      const answer = await askNodes({ urls, clock, connect });
      if (answer.url === null && !sure) return null;
      reached.set("nodes", answer.url !== null);
      return answer;
    }),
    database: once(async () => {
      if (!told || loaded === null || !isPostgresUrl(loaded.settings.store)) return null;
      const { store: url, postgres } = loaded.settings;
      return noted(
        "the database",
        askPostgres({ url, schema: postgres.schema, clock, deadlineMs: deadlineMs * 0.8 }),
        () => true,
      );
    }),
    redis: once(async () => {
      if (!told || loaded === null || loaded.settings.redis.url === "") return null;
      const { url } = loaded.settings.redis;
      return noted("Redis", askRedis({ url, clock, deadlineMs: deadlineMs * 0.8 }), () => true);
    }),
    etcd: once(async () => {
      if (!told || loaded === null || loaded.settings.etcd.url === "") return null;
      const asking = askEtcd({ url: loaded.settings.etcd.url, clock, deadlineMs: deadlineMs * 0.8 });
      return noted("etcd", asking, (members) => members.some(({ version }) => version !== null));
    }),
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
  const others = Object.values(nodes).filter((url) => listenerOf(url) !== null || URL.canParse(url));
  return { urls: [...new Set([...(http.port === 0 ? [] : [own]), ...others])], sure: others.length > 0 };
}

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | null = null;
  return () => (asked ??= ask());
}

function checkNames(text: string): readonly string[] {
  const known = CHECKS.map(({ name }) => name);
  return text.split(",").map((each) => {
    const name = each.trim();
    if (known.includes(name)) return name;
    const guess = nearest(name, known);
    throw new InvalidArgumentError(`There is no check ${name}${guess ? `; did you mean ${guess}?` : "."}`);
  });
}

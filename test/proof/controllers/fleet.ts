/** Two node-controllers and some agents on one database, and everybody of them who can be killed. */

import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { roleOf, type RoleBody } from "../../support/cluster.ts";
import { freePort } from "../../support/free-port.ts";
import { BIN, COMPILED } from "../../support/process.ts";
import { eventually } from "../../support/wait.ts";
import { Member } from "./member.ts";
import {
  childrenOf,
  isMarked,
  MARK_VARIABLE,
  markedProcesses,
  signalMarked,
  strays,
  type Marked,
} from "./processes.ts";
import { NOTES_VARIABLE } from "./run-notes.ts";

export type Kind = "supervisor" | "controller" | "moonlighter" | "agent" | "python" | "sentinel" | "machine";

/** Who may be hurt: one process, or all of a machine at once. */
export interface Victim {
  readonly kind: Kind;
  readonly member: Member;
  readonly pids: readonly number[];
}

export interface FleetOptions {
  readonly directory: string;
  readonly store: string;
  readonly mark: string;
  readonly chance: () => number;
  readonly onBroken: (error: Error) => void;
}

/** Of leaders. Three seconds are long enough for a busy machine, and short enough to be outlived often. */
export const LEASE_MS = 3_000;

const NODES = ["ada", "bob"];
const AGENTS = ["cyd", "dan"];
const TASKS = fileURLToPath(new URL("tasks", import.meta.url));
const PYTHON_AGENT = fileURLToPath(new URL("agent.py", import.meta.url));
const SETTINGS: Readonly<Record<string, string>> = {
  LEADER__LEASE: `${LEASE_MS}ms`,
  LEADER__RENEW: "500ms",
  LEADER__MARGIN: "750ms",
  LEADER__RETRY: "200ms",
  NODE__HEARTBEAT: "500ms",
  NODE__DEAD_AFTER: "3s",
  AGENTS__LEASE: "3s",
  // By default a child that is killed every half minute is kept waiting for half a minute.
  CONTROLLER__RESTART_FIRST: "200ms",
  CONTROLLER__RESTART_MAX: "1s",
  RETRY__DELAY: "50ms",
  JOBS__CRASHES_MAX: "1000", // they are killed from outside, and no job is to blame
  DRAIN__TIMEOUT: "4s",
  DRAIN__CLEANUP: "1s",
  LOG__FORMAT: "json",
};

export class Fleet {
  readonly nodes: readonly Member[];
  readonly agents: readonly Member[];
  readonly notes: string;
  readonly #o: FleetOptions;
  readonly #python: Member | null;

  private constructor(options: FleetOptions, nodes: readonly Member[], agents: readonly Member[]) {
    this.#o = options;
    this.nodes = nodes;
    this.agents = agents;
    this.#python = agents.find(({ name }) => name === "snake") ?? null;
    this.notes = join(options.directory, "notes");
    mkdirSync(this.notes);
  }

  /** Nobody is started yet. */
  static async make(options: FleetOptions): Promise<Fleet> {
    const { directory, store, mark, chance, onBroken } = options;
    const environment = {
      PATH: process.env["PATH"] ?? "",
      NODE_COMPILE_CACHE: COMPILED,
      [MARK_VARIABLE]: mark,
      [NOTES_VARIABLE]: join(directory, "notes"),
    };
    const settings = Object.fromEntries(
      Object.entries(SETTINGS).map(([key, value]) => [`BATON_${key}`, value]),
    );
    const common = { onBroken, restartMs: () => 200 + 1_500 * chance() };
    const log = (name: string): string => join(directory, `${name}.log`);
    const nodes: Member[] = [];
    for (const name of NODES) {
      const port = await freePort();
      const data = join(directory, name);
      const flags = ["--name", name, "--data", data, "--port", String(port), "--tasks", TASKS];
      nodes.push(
        new Member({
          ...common,
          name,
          log: log(name),
          command: [process.execPath, BIN, "controller", ...flags],
          environment: { ...environment, ...settings, BATON_STORE: store },
          node: { data, url: `http://127.0.0.1:${port}` },
        }),
      );
    }
    const urls = nodes.map(({ node }) => node!.url).join(",");
    const agent = (name: string, command: readonly string[]): Member =>
      new Member({
        ...common,
        name,
        log: log(name),
        command: [...command, "--url", urls, "--name", name],
        environment: { ...environment, BATON_LOG__FORMAT: "json" },
      });
    const agents = AGENTS.map((name) => agent(name, [process.execPath, BIN, "agent", "--tasks", TASKS]));
    const python = pythonProgram();
    if (python) agents.push(agent("snake", [python, "-B", PYTHON_AGENT]));
    return new Fleet(options, nodes, agents);
  }

  get hasPython(): boolean {
    return this.#python !== null;
  }

  get members(): readonly Member[] {
    return [...this.nodes, ...this.agents];
  }

  get urls(): readonly string[] {
    return this.nodes.map(({ node }) => node!.url);
  }

  async roles(): Promise<ReadonlyMap<Member, RoleBody | null>> {
    const asked = this.nodes.map(async (node) => [node, await roleOf(node.node!)] as const);
    return new Map(await Promise.all(asked));
  }

  /** One leads and the other stands by with its agent at work. */
  async settled(withinMs: number): Promise<void> {
    await eventually(
      "a leader, and a standby whose agent works",
      async () => {
        const reports = this.nodes.map((node) => node.report());
        const leads = reports.filter((report) => report?.role === "LEADER").length;
        const helps = reports.filter(
          (report) => report?.role === "STANDBY" && "pid" in report.agent && report.agent.state === "running",
        ).length;
        return leads === 1 && helps === 1;
      },
      withinMs,
    );
  }

  /** Everybody who lives at this moment. */
  victims(): Victim[] {
    const found: Victim[] = [];
    for (const member of this.nodes) {
      const { pid } = member;
      if (pid === null) continue;
      const add = (kind: Kind, pids: readonly number[]): void => void found.push({ kind, member, pids });
      const report = member.report();
      const controller = report?.controller.pid ?? null;
      const agent = report && "pid" in report.agent ? report.agent.pid : null;
      const own = [controller, agent].filter((each) => each !== null);
      // What is neither of its children is the shell that watches over them.
      const sentinel = report ? childrenOf(pid).filter((each) => !own.includes(each)) : [];
      add("supervisor", [pid]);
      if (controller !== null) add("controller", [controller]);
      if (agent !== null) add("moonlighter", [agent]);
      if (sentinel.length === 1) add("sentinel", sentinel);
      // The shell first: it would tidy up.
      add("machine", [...sentinel, pid, ...own]);
    }
    for (const member of this.agents) {
      const kind = member === this.#python ? "python" : "agent";
      if (member.pid !== null) found.push({ kind, member, pids: [member.pid] });
    }
    return found;
  }

  signal(pid: number, signal: NodeJS.Signals): boolean {
    return signalMarked(pid, signal, this.#o.mark);
  }

  isThere(pid: number): boolean {
    return isMarked(pid, this.#o.mark);
  }

  /** What is left of them all, by the mark. */
  leftovers(): Marked[] {
    return markedProcesses(this.#o.mark);
  }

  /** Those whose node-controller is gone, whether it had told of them or not. */
  strays(): Marked[] {
    return strays(this.#o.mark);
  }

  /** For the end of a proof that failed: nobody is asked. */
  async end(): Promise<void> {
    await Promise.all(this.members.map((member) => member.end()));
    for (const { pid } of this.leftovers()) this.signal(pid, "SIGKILL");
  }
}

/** The program itself: what is called python3 may be a script that looks for it. */
function pythonProgram(): string | null {
  const { status, stdout } = spawnSync("python3", ["-c", "import sys; print(sys.executable)"], {
    encoding: "utf8",
  });
  return status === 0 ? stdout.trim() : null;
}

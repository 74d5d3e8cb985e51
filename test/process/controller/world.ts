/** Real node-controllers: `baton controller` in processes of their own, with whatever they start. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../../src/platform/clock.ts";
import type { ChildReport } from "../../../src/supervisor/supervised-child.ts";
import type { SupervisorReport } from "../../../src/supervisor/supervisor-report.ts";
import { atEnd, type Scope } from "../../support/node-cleanup.ts";
import { dataDirectory, TASKS } from "../../support/process-node.ts";
import { BIN, environmentOf, TestProcess } from "../../support/process.ts";
import { eventually } from "../../support/wait.ts";

const AGENT = fileURLToPath(new URL("agent.mjs", import.meta.url));

export interface WorldOptions {
  readonly name?: string;
  readonly data?: string;
  /** How the agent behaves; `real` is `baton agent`. */
  readonly agent?: "deaf" | "crashing" | "parent" | "lazy" | "real";
  /** As in the environment, without the prefix. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
}

export interface LogLine {
  readonly time: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export class ControllerProcess extends TestProcess {
  readonly data: string;
  readonly name: string;

  private constructor(data: string, options: WorldOptions) {
    const name = options.name ?? "solo";
    const agent = [process.execPath, AGENT, data, "{name}", options.agent ?? "plain", "{urls}"];
    const settings = {
      LOG__FORMAT: "json",
      ...(options.agent === "real" ? { TASKS } : { CONTROLLER__AGENT_COMMAND: agent.join(",") }),
      CONTROLLER__RESTART_FIRST: "100ms",
      CONTROLLER__RESTART_MAX: "800ms",
      ...options.settings,
    };
    const args = ["--data", data, "--name", name, "--port", "0", ...(options.args ?? [])];
    const environment = environmentOf(settings);
    super(process.execPath, [BIN, "controller", ...args], { environment, leavesChildren: true });
    this.data = data;
    this.name = name;
  }

  static async start(t: Scope, options: WorldOptions = {}): Promise<ControllerProcess> {
    const started = new ControllerProcess(options.data ?? (await dataDirectory(t)), options);
    atEnd(t, async () => {
      // Whatever it leaves behind is a defect that other tests look for; here it is only cleaned up.
      const pids = started.#pids();
      await started[Symbol.asyncDispose]();
      for (const pid of pids) endProcess(pid);
    });
    return started;
  }

  /** As it stands in the file; null before there is one of this life. */
  report(): SupervisorReport | null {
    const path = join(this.data, "controller.json");
    if (!existsSync(path)) return null;
    const report = JSON.parse(readFileSync(path, "utf8")) as SupervisorReport;
    return report.pid === this.pid ? report : null;
  }

  async when(what: string, holds: (report: SupervisorReport) => boolean, withinMs = 30_000) {
    return eventually(
      `${this.name}: ${what}`,
      async () => {
        const report = this.report();
        return report && holds(report) ? report : null;
      },
      withinMs,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${JSON.stringify(this.report())}\n${this.output}`);
    });
  }

  /** Leads, with its duties begun. */
  leading() {
    return this.when(
      "to lead",
      ({ role, controller }) => role === "LEADER" && controller.state === "running",
    );
  }

  /** Stands by, with its agent at work. */
  moonlighting() {
    return this.when("to moonlight", (report) => {
      const { state, pid } = agentOf(report);
      return report.role === "STANDBY" && state === "running" && this.beats().at(-1)?.pid === pid;
    });
  }

  log(msg: string): LogLine[] {
    return this.stdout
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as LogLine)
      .filter((line) => line.msg.includes(msg));
  }

  /** When the agent was seen alive, by its own trace. */
  beats(): { readonly at: number; readonly pid: number }[] {
    const path = join(this.data, `${this.name}-worker`);
    if (!existsSync(path)) return [];
    const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
    return lines
      .map((line) => line.split(" ").map(Number) as [number, number])
      .map(([at, pid]) => ({ at, pid }));
  }

  #pids(): number[] {
    const report = this.report();
    return report ? [report.controller.pid, agentOf(report).pid].filter((pid) => pid !== null) : [];
  }
}

export function agentOf(report: SupervisorReport): ChildReport {
  assert.ok("pid" in report.agent, JSON.stringify(report.agent));
  return report.agent;
}

/** A zombie that nobody has reaped is dead. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    const path = `/proc/${pid}/stat`;
    return !existsSync(path) || !/\) [ZX] /.test(readFileSync(path, "utf8"));
  } catch {
    return false;
  }
}

/** How long it took until all of them were gone. Two seconds are enough on a machine that has nothing else to do. */
export async function untilGone(pids: readonly number[]): Promise<number> {
  const from = systemClock.monotonic();
  await eventually(`the end of ${pids.join(", ")}`, () => pids.every((pid) => !isAlive(pid)), 10_000);
  return systemClock.monotonic() - from;
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone already, as it should be.
  }
}

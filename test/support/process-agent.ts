/** Agents as real processes: `baton agent`, or one in another language. */

import { fileURLToPath } from "node:url";
import type { Scope } from "./node-cleanup.ts";
import { TASKS } from "./process-node.ts";
import { BIN, TestProcess } from "./process.ts";

export interface AgentOptions {
  readonly name?: string;
  readonly args?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

const PYTHON_AGENT = fileURLToPath(new URL("../../examples/agent-python/agent.py", import.meta.url));

export class AgentProcess extends TestProcess {
  static spawn(t: Scope, urls: readonly string[], options: AgentOptions = {}): AgentProcess {
    const { name = "agent-1", args = [] } = options;
    const all = [BIN, "agent", "--url", urls.join(","), "--name", name, "--tasks", TASKS, ...args];
    const environment = { BATON_LOG__FORMAT: "json", ...options.environment };
    return new AgentProcess(process.execPath, all, { environment }).endsWith(t);
  }

  static python(t: Scope, urls: readonly string[], options: AgentOptions = {}): AgentProcess {
    const { name = "snake", args = [], environment = {} } = options;
    const all = ["-B", PYTHON_AGENT, "--url", urls.join(","), "--name", name, ...args];
    return new AgentProcess("python3", all, { environment }).endsWith(t);
  }
}

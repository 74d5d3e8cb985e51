import { relative } from "node:path";
import type { Terminal } from "./terminal/terminal.ts";

/** What to type for another command: people in a checkout have no `baton` on their path. */
export function invocation(terminal: Terminal): string {
  const script = relative(terminal.cwd, process.argv[1] ?? "");
  return script.endsWith("baton.mjs") && !script.startsWith("..") && !script.includes("node_modules")
    ? `node ${script}`
    : "baton";
}

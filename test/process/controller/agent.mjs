// An agent that does nothing but leave a trace of its life: a line with the time every few milliseconds.
//   agent.mjs DIR NAME [deaf|crashing|parent]

import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";

const [directory, name, manner] = process.argv.slice(2);
const trace = join(directory, name);
const beat = () => appendFileSync(trace, `${Date.now()} ${process.pid}\n`);

beat();
if (manner === "crashing") process.exit(3);
if (manner === "parent") {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
  appendFileSync(join(directory, "grandchild"), String(child.pid));
}
setInterval(beat, 5);
process.on("SIGTERM", () => {
  if (manner !== "deaf") process.exit(0);
});

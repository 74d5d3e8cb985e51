// An agent that does nothing but leave a trace of its life: a line with the time every few milliseconds.
// A lazy one tells the leader that it could work, and never does.
//   agent.mjs DIR NAME deaf|crashing|parent|lazy|plain URL,URL

import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";

const [directory, name, manner, urls] = process.argv.slice(2);
const trace = join(directory, name);
const beat = () => appendFileSync(trace, `${Date.now()} ${process.pid}\n`);

beat();
if (manner === "crashing") process.exit(3);
if (manner === "parent") {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
  appendFileSync(join(directory, "grandchild"), String(child.pid));
}
if (manner === "lazy") {
  const sign = { agent: name, capabilities: ["tick"], running: 0 };
  const body = JSON.stringify(sign);
  const headers = { "content-type": "application/json" };
  const say = (url) => fetch(`${url}/v1/agents/heartbeat`, { method: "POST", headers, body }).catch(() => {});
  setInterval(() => void Promise.all(urls.split(",").map(say)), 200);
}
setInterval(beat, 5);
process.on("SIGTERM", () => {
  if (manner !== "deaf") process.exit(0);
});

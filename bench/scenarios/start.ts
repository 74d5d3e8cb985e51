/** CPU time until a command has ended or a node is ready: the best of five, with and without a cache of compiled code. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { absolute, type Row, type Scenario } from "../scenario.ts";

const TIMES = 5;
const BIN = fileURLToPath(new URL("../../bin/baton.mjs", import.meta.url));
const NODE = fileURLToPath(new URL("./start-node.ts", import.meta.url));
/** Preloaded: tells on the third descriptor what the whole process has used. */
const METER = `data:text/javascript,import{writeSync}from"node:fs";process.on("exit",()=>{const{user,system}=process.cpuUsage();writeSync(3,String((user+system)/1e6))})`;

export const start: Scenario = {
  name: "start",
  about: "CPU time of short commands, and of an embedded node until it is ready; best of five",
  only: "sqlite",
  async run(bench) {
    const dir = mkdtempSync(join(tmpdir(), "baton-bench-start-"));
    const node = spawn(process.execPath, [NODE, mkdtempSync(join(dir, "node-")), "stay"]);
    try {
      const [line] = (await once(node.stdout, "data")) as [Buffer];
      const { url } = JSON.parse(String(line)) as { url: string };
      const rows: Row[] = [];
      for (const cache of [null, join(dir, "cache")]) {
        const env = cache === null ? { NODE_DISABLE_COMPILE_CACHE: "1" } : { NODE_COMPILE_CACHE: cache };
        const add = async (what: string, most: number, once: () => Promise<number>): Promise<void> => {
          const figure = `${what}, ${cache === null ? "nothing compiled" : "compiled before"}`;
          // The first one fills the cache.
          if (cache !== null) await once();
          let ours = Infinity;
          for (let i = 0; i < TIMES; i++) ours = Math.min(ours, await once());
          bench.say(`${figure}: ${ours.toFixed(2)} s`);
          rows.push(absolute(figure, "s", ours, most));
        };
        await add("baton --version", 0.15, () => command(["--version"], env));
        await add("baton jobs list", 0.35, () => command(["jobs", "list", "--url", url], env));
        await add("embedded node ready", 0.7, () => embedded(mkdtempSync(join(dir, "node-")), env));
      }
      return rows;
    } finally {
      node.kill();
      await once(node, "exit");
      rmSync(dir, { recursive: true, force: true });
    }
  },
};

async function command(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(process.execPath, ["--import", METER, BIN, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "ignore", "inherit", "pipe"],
  });
  const [[text]] = await Promise.all([once(child.stdio[3]!, "data"), once(child, "exit")]);
  return Number(String(text));
}

async function embedded(dir: string, env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(process.execPath, [NODE, dir], { env: { ...process.env, ...env } });
  const [[text]] = await Promise.all([once(child.stdout, "data"), once(child, "exit")]);
  return (JSON.parse(String(text)) as { cpuMs: number }).cpuMs / 1_000;
}

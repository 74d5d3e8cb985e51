/** A process that makes a node with the default settings in the folder that it is given, and prints the CPU time until it was ready. */

import { loadSettings } from "../../src/config/load-settings.ts";
import { createNode } from "../../src/node/baton-node.ts";

const { settings } = loadSettings({ cwd: process.argv[2]!, environment: { BATON_HTTP__PORT: "0" } });
const node = await createNode({ settings });
await node.start();
const { user, system } = process.cpuUsage();
process.stdout.write(`${JSON.stringify({ cpuMs: (user + system) / 1_000, url: node.url })}\n`);
if (process.argv[3] === "stay") await new Promise((resolve) => process.once("SIGTERM", resolve));
await node.stop();
process.exit(0);

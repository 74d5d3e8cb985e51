/**
 * Several nodes in one process, each with connections of its own: for tests that need more of them than a machine can start as
 * processes. Settings come out of the environment, names are the arguments; tells each node's address in a line of JSON.
 */

import { createNode } from "../../src/node/baton-node.ts";
import { loadSettings } from "../../src/config/load-settings.ts";

const { settings } = loadSettings();
await Promise.all(
  process.argv.slice(2).map(async (name) => {
    const worker = { ...settings.worker, queues: ["default", name] };
    const node = await createNode({ settings: { ...settings, name, worker } });
    await node.start();
    console.log(JSON.stringify({ name, url: node.url }));
  }),
);

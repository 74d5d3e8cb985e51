/** Runs on a worker thread: an agent's link to the controllers, which handlers that block cannot delay. */

import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../platform/clock.ts";
import { createLog, type LogOptions } from "../platform/log.ts";
import { systemRandom } from "../platform/random.ts";
import { ControllerLink, type ControllerLinkSettings } from "./controller-link.ts";
import type { ToLink } from "./link-messages.ts";

const { settings, log } = workerData as { settings: ControllerLinkSettings; log: LogOptions };
const port = parentPort!;

const platform = { clock: systemClock, random: systemRandom, log: createLog(log) };
const link = new ControllerLink(platform, settings, (message) => port.postMessage(message));
port.on("message", (message: ToLink) => link.hear(message));
await link.start();

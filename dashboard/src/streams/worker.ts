/** The hub in a worker of its own, shared by all pages of this origin and prefix. */

import { StreamHub } from "./hub.ts";
import type { ToHub } from "./messages.ts";

const hub = new StreamHub();

self.addEventListener("connect", (event) => {
  const port = (event as MessageEvent).ports[0]!;
  const hear = hub.join((message) => port.postMessage(message));
  port.addEventListener("message", ({ data }: MessageEvent<ToHub>) => hear(data));
  port.start();
});

import { Worker as Thread } from "node:worker_threads";
import type { LogOptions } from "../platform/log.ts";
import type { ControllerLinkSettings } from "./controller-link.ts";
import type { FromLink, ToLink } from "./controller-link-messages.ts";

/** The main thread's end of a link. */
export interface LinkPort {
  send(message: ToLink): void;
  close(): Promise<void>;
}

export interface LinkListener {
  readonly hear: (message: FromLink) => void;
  /** It is gone, and with it the knowledge of what was leased. */
  readonly onDied: (error: unknown) => void;
}

export type OpenLink = (listener: LinkListener) => LinkPort;

/** Resolved relative to this module, with its own ending: `.ts` in a checkout, `.js` in the published package. */
const ENTRY = new URL(
  import.meta.url.endsWith(".ts") ? "./controller-link-main.ts" : "./controller-link-main.js",
  import.meta.url,
);

export function openLinkThread(settings: ControllerLinkSettings, log: LogOptions): OpenLink {
  return ({ hear, onDied }) => {
    const thread = new Thread(ENTRY, { workerData: { settings, log } });
    let closed = false;
    thread.on("message", hear);
    thread.on("error", (error) => {
      if (!closed) onDied(error);
    });
    return {
      send: (message) => thread.postMessage(message),
      async close() {
        closed = true;
        await thread.terminate();
      },
    };
  };
}

/** The page's line to the hub, wherever that is. Rests while nobody looks at the page. */

// oxlint-disable-next-line import/default -- made by the bundler: the address of the worker's file
import workerUrl from "./worker.ts?sharedworker&url";
import { StreamHub } from "./hub.ts";
import type { FromHub, LogNews, ToHub } from "./messages.ts";

const PING_MS = 10_000;

interface Followed {
  readonly job: string;
  after: number;
  readonly onNews: (news: LogNews) => void;
}

export class Line {
  readonly #say: (message: ToHub) => void;
  readonly #onMessage: (message: Exclude<FromHub, { is: "log" }>) => void;
  readonly #followed = new Map<number, Followed>();
  #keys = 0;

  constructor(onMessage: (message: Exclude<FromHub, { is: "log" }>) => void) {
    this.#onMessage = onMessage;
    this.#say = connect(
      (message) => this.#hear(message),
      () => this.#begin(),
    );
    const look = (): void => (document.visibilityState === "visible" ? this.#begin() : this.#rest());
    document.addEventListener("visibilitychange", look);
    addEventListener("pagehide", () => this.#rest());
    addEventListener("pageshow", look);
    setInterval(() => document.visibilityState === "visible" && this.#say({ do: "ping" }), PING_MS);
    look();
  }

  retry(): void {
    this.#say({ do: "retry" });
  }

  /** The function that ends it. */
  follow(job: string, after: number, onNews: (news: LogNews) => void): () => void {
    const key = ++this.#keys;
    this.#followed.set(key, { job, after, onNews });
    this.#say({ do: "follow", key, job, after });
    return () => {
      this.#followed.delete(key);
      this.#say({ do: "unfollow", key });
    };
  }

  #begin(): void {
    this.#say({ do: "watch" });
    for (const [key, { job, after }] of this.#followed) this.#say({ do: "follow", key, job, after });
  }

  #rest(): void {
    this.#say({ do: "unwatch" });
  }

  #hear(message: FromHub): void {
    if (message.is !== "log") return this.#onMessage(message);
    const followed = this.#followed.get(message.key);
    if (!followed) return;
    followed.after = message.news.lines.at(-1)?.seq ?? followed.after;
    followed.onNews(message.news);
  }
}

interface TrustedTypes {
  createPolicy(name: string, rules: object): { createScriptURL(url: string): string };
}

/** `onMoved` is called when the worker could not be started and the page itself takes its place, which knows nothing yet. */
function connect(hear: (message: FromHub) => void, onMoved: () => void): (message: ToHub) => void {
  if (typeof SharedWorker === "undefined") return new StreamHub().join(hear);
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  // The only script that the page ever starts by its address, and the address is written here.
  const policy = trustedTypes?.createPolicy("baton", { createScriptURL: () => workerUrl });
  const url = policy ? policy.createScriptURL("") : workerUrl;
  const worker = new SharedWorker(url, { type: "module", name: "baton" });
  worker.port.addEventListener("message", ({ data }: MessageEvent<FromHub>) => hear(data));
  worker.port.start();
  let say = (message: ToHub): void => worker.port.postMessage(message);
  worker.addEventListener("error", () => {
    say = new StreamHub().join(hear);
    onMoved();
  });
  return (message) => say(message);
}

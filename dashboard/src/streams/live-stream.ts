/** The one stream of the cluster's news, opened again whenever it breaks. */

import type { OverviewBody } from "../../../src/api/overview.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { Backoff, Pause } from "../../../src/platform/loop.ts";
import { BASE } from "../api/call.ts";
import { asProblem, Problem } from "../api/problem.ts";
import type { FromHub, Link, Tell } from "./messages.ts";
import { readEvents } from "./read-events.ts";

const RETRY_MS_MIN = 500;
/** Longer, and a node that came back is noticed late; shorter, and ten pages knock on a node that starts. */
const RETRY_MS_MAX = 4_000;
/** Entries of so long are one message: five hundred a second are ten. */
const GATHER_MS = 100;

export class LiveStream {
  readonly #tell: Tell;
  #stop: AbortController | null = null;
  readonly #pause = new Pause(systemClock);
  #gathering = false;
  link: Link = { state: "connecting", since: Date.now(), why: null };
  /** The last one, for pages that come later. */
  overview: Extract<FromHub, { is: "overview" }> | null = null;

  constructor(tell: Tell) {
    this.#tell = tell;
  }

  start(): void {
    if (this.#stop) return;
    this.#stop = new AbortController();
    void this.#run(this.#stop.signal);
  }

  stop(): void {
    this.#stop?.abort();
    this.#stop = null;
  }

  /** At once, and not when it would be time. */
  retry(): void {
    this.#pause.wake();
  }

  async #run(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff(RETRY_MS_MIN, RETRY_MS_MAX);
    while (!signal.aborted) {
      if (this.link.state !== "lost") this.#become("connecting", null);
      let why = "the node ended the connection";
      try {
        await readEvents(new URL("cluster/live", BASE).href, {
          signal,
          onOpen: () => {
            backoff.reset();
            this.#become("live", null);
          },
          onEvents: (events) => {
            for (const { event, data } of events) this.#take(event, data);
          },
        });
      } catch (error) {
        if (signal.aborted) return;
        const problem = asProblem(error);
        if (error instanceof Problem && (problem.status === 401 || problem.status === 403)) {
          this.#become("refused", problem.message);
          this.#pause.clear();
          await this.#pause.sleep(Infinity, signal);
          this.#become("connecting", null);
          continue;
        }
        why = error instanceof Problem ? problem.message : "the node does not answer";
      }
      if (signal.aborted) return;
      this.#become("lost", why);
      this.#pause.clear();
      await this.#pause.sleep(backoff.next() * (0.75 + Math.random() / 2), signal);
    }
  }

  #take(event: string, data: unknown): void {
    if (event === "overview") {
      this.overview = { is: "overview", body: data as OverviewBody, heardAt: Date.now() };
      this.#tell(this.overview);
    } else if (event === "journal" && !this.#gathering) {
      this.#gathering = true;
      setTimeout(() => {
        this.#gathering = false;
        this.#tell({ is: "journal" });
      }, GATHER_MS);
    }
  }

  #become(state: Link["state"], why: string | null): void {
    if (this.link.state === state && this.link.why === why) return;
    const since = this.link.state === state ? this.link.since : Date.now();
    this.link = { state, since, why };
    this.#tell({ is: "link", link: this.link });
  }
}

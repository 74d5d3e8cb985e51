/**
 * The log of one job as it grows. A browser opens six connections to a node, for all of its pages together; so only a few logs are
 * streamed at the same time, and the others are asked for every second.
 */

import type { LogLineBody } from "../../../src/api/bodies/job-body.ts";
import { isFinal } from "../../../src/core/jobs/job.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { BASE, call } from "../api/call.ts";
import { Problem } from "../api/problem.ts";
import type { LogNews } from "./messages.ts";
import { readEvents } from "./read-events.ts";

export interface LogStreamOptions {
  readonly job: string;
  /** Only lines behind this sequence number. */
  readonly after: number;
  /** Takes a place among those that stream, if there is one; the result gives it back. */
  readonly takePlace: () => (() => void) | null;
  readonly onNews: (news: LogNews) => void;
}

type Progress = LogNews["progress"];

const RETRY_MS = 1_000;
const ASK_EVERY_MS = 1_000;
const ASK_LINES = 5_000;
const ASK_TIMEOUT_MS = 10_000;

export class LogStream {
  readonly #o: LogStreamOptions;
  readonly #stop = new AbortController();
  #after: number;
  #ended = false;
  #troubled = false;

  constructor(options: LogStreamOptions) {
    this.#o = options;
    this.#after = options.after;
    void this.#run();
  }

  stop(): void {
    this.#stop.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted && !this.#ended) {
      const leave = this.#o.takePlace();
      try {
        if (leave) await this.#stream();
        else await this.#ask();
        this.#fine();
      } catch (error) {
        if (signal.aborted) return;
        const refused = error instanceof Problem;
        this.#troubled = true;
        this.#o.onNews({ lines: [], trouble: refused ? error.message : "the node does not answer" });
        // It is gone for good, or not for us.
        if (refused && error.status !== null && error.status < 500 && error.status !== 429) return;
      } finally {
        leave?.();
      }
      if (!this.#ended) await systemClock.sleep(leave ? RETRY_MS : ASK_EVERY_MS, signal);
    }
  }

  #stream(): Promise<void> {
    const url = new URL(`jobs/${encodeURIComponent(this.#o.job)}/logs`, BASE).href;
    return readEvents(url, {
      signal: this.#stop.signal,
      lastEventId: String(this.#after),
      onOpen: () => this.#fine(),
      onEvents: (events) => {
        const lines: LogLineBody[] = [];
        let progress: Progress;
        for (const { event, data } of events) {
          if (event === "log") lines.push(data as LogLineBody);
          else if (event === "progress") progress = data as Progress;
          else if (event === "end") this.#ended = true;
        }
        this.#after = lines.at(-1)?.seq ?? this.#after;
        this.#o.onNews({ lines, ...(progress && { progress }), ...(this.#ended && { ended: true }) });
      },
    });
  }

  async #ask(): Promise<void> {
    const params = { id: this.#o.job };
    const options = { signal: this.#stop.signal, timeoutMs: ASK_TIMEOUT_MS };
    // The job first: the lines of one that is finished by then are all there.
    const job = await call("GET /jobs/{id}", { params }, options);
    const query = { after: this.#after, limit: ASK_LINES };
    const { logs, next_after } = await call("GET /jobs/{id}/logs", { params, query }, options);
    this.#after = next_after;
    this.#ended = isFinal(job.status) && logs.length < ASK_LINES;
    const progress = { progress: job.progress, message: job.progress_message };
    this.#o.onNews({ lines: logs, progress, ...(this.#ended && { ended: true }) });
  }

  #fine(): void {
    if (!this.#troubled) return;
    this.#troubled = false;
    this.#o.onNews({ lines: [], trouble: null });
  }
}

/** Metrics of requests by route, as the operation table names it, so that no id becomes a label. Called for every request. */

import { FastHistogram, type Instruments, type Reading } from "./instruments.ts";

/** Seconds. Streams last as long as somebody reads, and are counted without a time. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const CLASSES = ["1xx", "2xx", "3xx", "4xx", "5xx"] as const;

interface RouteCounts {
  readonly labels: { readonly method: string; readonly route: string };
  readonly statuses: number[];
  readonly took: FastHistogram;
}

export class HttpMetrics {
  readonly #routes = new Map<string, RouteCounts>();

  constructor(instruments: Instruments) {
    instruments.register({
      baton_http_requests_total: () =>
        [...this.#routes.values()].flatMap(({ labels, statuses }) =>
          statuses.flatMap((count, at): Reading[] =>
            count === 0 ? [] : [[{ ...labels, status: CLASSES[at]! }, count]],
          ),
        ),
      baton_http_request_seconds: () =>
        [...this.#routes.values()]
          .filter(({ took }) => took.count > 0)
          .map(({ labels, took }): Reading<FastHistogram> => [labels, took]),
    });
  }

  answered(method: string, route: string, status: number, tookMs: number | null): void {
    const key = `${method} ${route}`;
    let known = this.#routes.get(key);
    if (!known) {
      known = { labels: { method, route }, statuses: [0, 0, 0, 0, 0], took: new FastHistogram(BOUNDS) };
      this.#routes.set(key, known);
    }
    const at = Math.floor(status / 100) - 1;
    if (at >= 0 && at < CLASSES.length) known.statuses[at]!++;
    if (tookMs !== null) known.took.observe(tookMs / 1_000);
  }
}

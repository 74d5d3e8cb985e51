/**
 * Metrics of requests by route, as the operation table names it, so that no id becomes a label. Called for every
 * request.
 */

import { FastHistogram, type Instruments, type Labels, type Reading } from "./instruments.ts";

/** Seconds. Streams last as long as somebody reads, and are counted without a time. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const CLASSES = ["1xx", "2xx", "3xx", "4xx", "5xx"] as const;

class RouteCounts {
  readonly statuses = [0, 0, 0, 0, 0];
  readonly took = new FastHistogram(BOUNDS);
}

export class HttpMetrics {
  readonly #routes = new Map<
    string,
    { readonly labels: { readonly method: string; readonly route: string }; readonly counts: RouteCounts }
  >();

  constructor(instruments: Instruments) {
    instruments.register({
      baton_http_requests_total: () =>
        [...this.#routes.values()].flatMap(({ labels, counts }) =>
          counts.statuses.flatMap((count, at): Reading[] =>
            count === 0 ? [] : [[{ ...labels, status: CLASSES[at]! }, count]],
          ),
        ),
    });
    instruments.histograms({
      baton_http_request_seconds: () =>
        [...this.#routes.values()].flatMap(({ labels, counts }): [Labels, FastHistogram][] =>
          counts.took.count === 0 ? [] : [[labels, counts.took]],
        ),
    });
  }

  answered(method: string, route: string, status: number, tookMs: number | null): void {
    const key = `${method} ${route}`;
    let known = this.#routes.get(key);
    if (!known) this.#routes.set(key, (known = { labels: { method, route }, counts: new RouteCounts() }));
    const at = Math.floor(status / 100) - 1;
    if (at >= 0 && at < CLASSES.length) known.counts.statuses[at]!++;
    if (tookMs !== null) known.counts.took.observe(tookMs / 1_000);
  }
}

/**
 * Client calls about the cluster as a whole: overview, nodes, leaders, journal, metrics, and the jobs of all nodes. An
 * answer shows the cluster as the answering node sees it.
 */

import type { Clock } from "../platform/clock.ts";
import type { AnswerOf, BodyOf, Parts, QueryOf, Route } from "../api/operation-table.ts";
import { followLive, type LiveEvent, type LiveOptions } from "./streams/follow-live.ts";

type Call = <R extends Route>(route: R, parts: Parts<R>) => Promise<AnswerOf<R>>;

type OpenStream = (route: "GET /cluster/live", signal: AbortSignal) => Promise<AsyncIterable<string>>;

const GIVE_UP_AFTER_MS = 30_000;

export class ClusterCalls {
  readonly #call: Call;
  readonly #open: OpenStream;
  readonly #clock: Clock;

  constructor(call: Call, open: OpenStream, clock: Clock) {
    this.#call = call;
    this.#open = open;
    this.#clock = clock;
  }

  /** All at a glance: nodes, leader, jobs, rates, times, backlog and alerts. */
  overview() {
    return this.#call("GET /cluster/overview", {});
  }

  /** The overview whenever it has changed, and what is written into the journal, across broken connections. */
  live({ signal, giveUpAfterMs = GIVE_UP_AFTER_MS }: LiveOptions = {}): AsyncIterable<LiveEvent> {
    const open = (over: AbortSignal) => this.#open("GET /cluster/live", over);
    return followLive({ open, signal, giveUpAfterMs, clock: this.#clock });
  }

  info() {
    return this.#call("GET /cluster", {});
  }

  nodes() {
    return this.#call("GET /cluster/nodes", {});
  }

  node(name: string) {
    return this.#call("GET /cluster/nodes/{name}", { params: { name } });
  }

  /** Only asks: look at the node to see it follow. */
  drain(name: string) {
    return this.#call("POST /cluster/nodes/{name}/drain", { params: { name } });
  }

  resume(name: string) {
    return this.#call("POST /cluster/nodes/{name}/resume", { params: { name } });
  }

  /** Takes a node out of a cluster of peers. */
  remove(name: string) {
    return this.#call("DELETE /cluster/nodes/{name}", { params: { name } });
  }

  leaders() {
    return this.#call("GET /cluster/leaders", {});
  }

  /** Newest first. */
  metrics(limit?: number) {
    return this.#call("GET /cluster/metrics", { query: { limit } });
  }

  /** Terms with the reason of their end, newest first, and writes that were refused. */
  leaderHistory(filter: QueryOf<"GET /cluster/leaders/history"> = {}) {
    return this.#call("GET /cluster/leaders/history", { query: filter });
  }

  /** Failed jobs grouped by their error. */
  failures(filter: QueryOf<"GET /cluster/failures"> = {}) {
    return this.#call("GET /cluster/failures", { query: filter });
  }

  /** One page: call again with `next_cursor` as the cursor until it is null. */
  bulk(request: BodyOf<"POST /cluster/jobs/bulk">) {
    return this.#call("POST /cluster/jobs/bulk", { body: request });
  }

  /** Newest first. */
  journal(filter: QueryOf<"GET /cluster/journal"> = {}) {
    return this.#call("GET /cluster/journal", { query: filter });
  }

  /** Of the node that answers: what it has placed where, and whom it sees. */
  localMetrics() {
    return this.#call("GET /cluster/local-metrics", {});
  }

  metricsSummary() {
    return this.#call("GET /cluster/metrics-summary", {});
  }

  jobs(filter: QueryOf<"GET /cluster/jobs"> = {}) {
    return this.#call("GET /cluster/jobs", { query: filter });
  }
}

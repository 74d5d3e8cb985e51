/**
 * Client calls about the cluster as a whole: overview, nodes, leaders, journal, metrics, and the jobs of all nodes. An
 * answer shows the cluster as the answering node sees it.
 */

import type { AnswerOf, BodyOf, Parts, QueryOf, Route } from "../api/operation-table.ts";
import type { JournalEntryBody } from "../api/operations/cluster/journal.ts";
import type { OverviewBody } from "../api/overview.ts";
import type { StreamOptions } from "./client-options.ts";
import type { EventSourceMessage } from "./streams/resumable-stream.ts";

type Call = <R extends Route>(route: R, parts: Parts<R>) => Promise<AnswerOf<R>>;

type Live = (
  read: (message: EventSourceMessage) => LiveEvent[],
  options: StreamOptions,
) => AsyncIterable<LiveEvent>;

export type LiveEvent =
  | { readonly event: "overview"; readonly overview: OverviewBody }
  | { readonly event: "journal"; readonly entry: JournalEntryBody };

export class ClusterCalls {
  readonly #call: Call;
  readonly #live: Live;

  constructor(call: Call, live: Live) {
    this.#call = call;
    this.#live = live;
  }

  /** All at a glance: nodes, leader, jobs, rates, times, backlog and alerts. */
  overview() {
    return this.#call("GET /cluster/overview", {});
  }

  /**
   * The overview whenever it has changed, and what is written into the journal, across broken connections. Each new connection begins
   * with the overview.
   */
  live(options: StreamOptions = {}): AsyncIterable<LiveEvent> {
    return this.#live(readLive, options);
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

function readLive({ event, data }: EventSourceMessage): LiveEvent[] {
  if (event === "overview") return [{ event, overview: JSON.parse(data) as OverviewBody }];
  if (event === "journal") return [{ event, entry: JSON.parse(data) as JournalEntryBody }];
  return [];
}

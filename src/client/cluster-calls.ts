/** Client calls about the cluster as a whole, and about access to it. */

import type { AnswerOf, BodyOf, Parts, QueryOf, Route } from "../api/operation-table.ts";
import type { JournalEntryBody } from "../api/operations/cluster/journal.ts";
import type { OverviewBody } from "../api/overview.ts";
import type { EventSourceMessage, StreamOptions } from "./streams/resumable-stream.ts";

type Call = <R extends Route>(route: R, parts?: Parts<R>) => Promise<AnswerOf<R>>;

type Live = (
  read: (message: EventSourceMessage) => LiveEvent[],
  options: StreamOptions,
) => AsyncIterable<LiveEvent>;

export type LiveEvent =
  | { readonly event: "overview"; readonly overview: OverviewBody }
  | { readonly event: "journal"; readonly entry: JournalEntryBody };

/** An answer shows the cluster as the answering node sees it. */
export function clusterCalls(call: Call, live: Live) {
  return {
    overview: () => call("GET /cluster/overview"),
    /** The overview whenever it has changed, and the journal, across broken connections. Each connection begins with the overview. */
    live: (options: StreamOptions = {}): AsyncIterable<LiveEvent> => live(readLive, options),
    info: () => call("GET /cluster"),
    nodes: () => call("GET /cluster/nodes"),
    node: (name: string) => call("GET /cluster/nodes/{name}", { params: { name } }),
    /** Only asks: look at the node to see it follow. */
    drain: (name: string) => call("POST /cluster/nodes/{name}/drain", { params: { name } }),
    resume: (name: string) => call("POST /cluster/nodes/{name}/resume", { params: { name } }),
    remove: (name: string) => call("DELETE /cluster/nodes/{name}", { params: { name } }),
    leaders: () => call("GET /cluster/leaders"),
    /** Newest first. */
    metrics: (limit?: number) => call("GET /cluster/metrics", { query: { limit } }),
    /** Terms with the reason of their end, newest first, and writes that were refused. */
    leaderHistory: (filter: QueryOf<"GET /cluster/leaders/history"> = {}) =>
      call("GET /cluster/leaders/history", { query: filter }),
    failures: (filter: QueryOf<"GET /cluster/failures"> = {}) =>
      call("GET /cluster/failures", { query: filter }),
    /** One page: call again with `next_cursor` as the cursor until it is null. */
    bulk: (request: BodyOf<"POST /cluster/jobs/bulk">) => call("POST /cluster/jobs/bulk", { body: request }),
    /** Newest first. */
    journal: (filter: QueryOf<"GET /cluster/journal"> = {}) =>
      call("GET /cluster/journal", { query: filter }),
    /** Of the node that answers: what it has placed where, and whom it sees. */
    localMetrics: () => call("GET /cluster/local-metrics"),
    metricsSummary: () => call("GET /cluster/metrics-summary"),
    jobs: (filter: QueryOf<"GET /cluster/jobs"> = {}) => call("GET /cluster/jobs", { query: filter }),
  };
}

/** Who may do what. All but `whoAmI` needs the permission `admin`. */
export function accessCalls(call: Call) {
  return {
    whoAmI: () => call("GET /session"),
    tokens: () => call("GET /tokens"),
    /** The answer has the token's text, which is told only this once. */
    createToken: (token: BodyOf<"POST /tokens">) => call("POST /tokens", { body: token }),
    revokeToken: (id: string) => call("DELETE /tokens/{id}", { params: { id } }),
    users: () => call("GET /users"),
    addUser: (user: BodyOf<"POST /users">) => call("POST /users", { body: user }),
    setPassword: (name: string, password: string) =>
      call("PUT /users/{name}/password", { params: { name }, body: { password } }),
    removeUser: (name: string) => call("DELETE /users/{name}", { params: { name } }),
  };
}

function readLive({ event, data }: EventSourceMessage): LiveEvent[] {
  if (event === "overview") return [{ event, overview: JSON.parse(data) as OverviewBody }];
  if (event === "journal") return [{ event, entry: JSON.parse(data) as JournalEntryBody }];
  return [];
}

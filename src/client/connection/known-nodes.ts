/** The nodes that a client knows, a connection to each, and the discovery of others. */

import type { AnswerOf } from "../../api/operation-table.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Connection } from "./connection.ts";
import {
  failed,
  heardOf,
  learned,
  nextNode,
  nodeList,
  stoodBy,
  worked,
  type NodeList,
  type NodeChoice,
} from "./node-list.ts";

export interface KnownNodesOptions {
  readonly urls: readonly string[];
  readonly connect: (url: string) => Connection;
  /** False: only the given nodes are used, also when they tell of others. */
  readonly discover: boolean;
  /** True: nodes that are not gateways are used too, for requests that only the leader answers. */
  readonly anyRole?: boolean;
}

type NodesBody = Pick<AnswerOf<"GET /cluster/nodes">, "nodes">;

/** What a node that is asked for the list of nodes may take. No call waits for it. */
const LEARN_TIMEOUT_MS = 5_000;
/** How old the list of nodes may become. Longer, and a client that outlives all nodes that it knew finds none any more. */
const LEARN_EVERY_MS = 30_000;

/** After no node answered: sooner, and a token that may not ask would ask with every call. */
const LEARN_AGAIN_MS = 2_000;

export class KnownNodes {
  readonly #clock: Clock;
  readonly #o: KnownNodesOptions;
  readonly #connections = new Map<string, Connection>();
  #list: NodeList;
  #answered = false;
  #learnedAt = -Infinity;
  #learning: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(clock: Clock, options: KnownNodesOptions) {
    this.#clock = clock;
    this.#o = options;
    this.#list = nodeList(options.urls);
  }

  get list(): NodeList {
    return this.#list;
  }

  get answered(): boolean {
    return this.#answered;
  }

  next(choice: NodeChoice): string | null {
    return nextNode(this.#list, choice);
  }

  worked(url: string, asLeader: boolean): void {
    this.#answered = true;
    this.#list = worked(this.#list, url, asLeader);
    void this.learn();
  }

  /** It answered, but another is to be asked. */
  refused(url: string, standby: boolean, hints: readonly string[]): void {
    this.#answered = true;
    this.#list = standby ? stoodBy(this.#list, url) : failed(this.#list, url);
    if (this.#o.discover) this.#list = heardOf(this.#list, hints);
  }

  failed(url: string): void {
    this.#list = failed(this.#list, url);
  }

  connection(url: string): Connection {
    let connection = this.#connections.get(url);
    if (!connection) this.#connections.set(url, (connection = this.#o.connect(url)));
    return connection;
  }

  /** Asks any node for the list of all. Does nothing when the list is young, and fails quietly: it is asked for again later. */
  learn(): Promise<void> {
    const young = this.#clock.monotonic() - this.#learnedAt < LEARN_EVERY_MS;
    if (!this.#o.discover || this.#closed || young) return this.#learning;
    this.#learnedAt = this.#clock.monotonic();
    return (this.#learning = this.#learn());
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#connections.values()].map((connection) => connection.close()));
    await this.#learning;
  }

  async #learn(): Promise<void> {
    const { leader } = this.#list;
    // The leader last: it has more to do than the others.
    const asked = new Set(leader === null ? [] : [leader]);
    for (let url = this.next({ asked }) ?? leader; url !== null && !this.#closed;) {
      asked.add(url);
      try {
        const call = { method: "GET", path: "/cluster/nodes" } as const;
        const { status, body } = await this.connection(url).call(call, LEARN_TIMEOUT_MS);
        if (status === 200) return this.#remember((JSON.parse(body) as NodesBody).nodes);
      } catch {}
      url = url === leader ? null : (this.next({ asked }) ?? leader);
    }
    this.#learnedAt = this.#clock.monotonic() - LEARN_EVERY_MS + LEARN_AGAIN_MS;
  }

  #remember(nodes: NodesBody["nodes"]): void {
    const { anyRole = false } = this.#o;
    const urls = nodes.flatMap(({ url, status, roles }) =>
      url !== null && (anyRole || (status !== "dead" && roles.includes("gateway"))) ? [url] : [],
    );
    this.#list = learned(this.#list, urls);
    for (const [url, connection] of this.#connections) {
      if (this.#list.known.includes(url)) continue;
      this.#connections.delete(url);
      void connection.close();
    }
  }
}

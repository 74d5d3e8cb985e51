/**
 * One request to all nodes at the same time. A node that does not answer in time is missing from the result, and delays
 * nothing.
 */

import type { NodeInfo } from "../core/node.ts";
import type { Outcome, PeerRequest } from "../transport/transport.ts";

/** A page about the whole cluster waits no longer than this for a slow node; with the rest it is there within 1.5 s. */
export const FAN_OUT_MS = 1_200;

export interface FanOutOptions<Answer> {
  readonly nodes: readonly NodeInfo[];
  readonly self: string;
  readonly here: () => Promise<Answer>;
  readonly request: (node: NodeInfo) => PeerRequest;
  readonly call: (
    url: string,
    request: PeerRequest,
    options: { readonly deadlineMs: number; readonly to: NodeInfo["name"] },
  ) => Promise<Outcome>;
  /** Of a body that was answered with 200; a throw counts as no answer. */
  readonly read: (body: unknown) => Answer;
  readonly deadlineMs?: number;
}

export interface NodeAnswer<Answer> {
  readonly node: NodeInfo;
  /** Null: it was not reached, or its answer could not be read. */
  readonly answer: Answer | null;
}

/** In the order of the nodes. A failure of this node itself is thrown. */
export function fanOut<Answer>(options: FanOutOptions<Answer>): Promise<NodeAnswer<Answer>[]> {
  return Promise.all(
    options.nodes.map(async (node) => {
      const answer = node.name === options.self ? await options.here() : await ask(node, options);
      return { node, answer };
    }),
  );
}

async function ask<Answer>(node: NodeInfo, options: FanOutOptions<Answer>): Promise<Answer | null> {
  // A silent node is not asked: each request would wait for the whole time.
  if (node.url === null || !node.alive) return null;
  const { call, request, read, deadlineMs = FAN_OUT_MS } = options;
  const outcome = await call(node.url, request(node), { deadlineMs, to: node.name });
  if (outcome.outcome !== "reply" || outcome.status !== 200) return null;
  try {
    return read(JSON.parse(outcome.body));
  } catch {
    return null;
  }
}

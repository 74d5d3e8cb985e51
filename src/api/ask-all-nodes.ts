/**
 * Sends one request to all nodes where each has its own store, and answers locally where they share one. A node that is
 * asked by another node answers only for itself, so a request is never passed on twice.
 */

import { fanOut } from "../peers/fan-out.ts";
import type { NodeAnswer } from "../peers/fan-out.ts";
import type { PeerRequest } from "../transport/transport.ts";
import { hopPath, principalHeader, type Inbound } from "../transport/hop-headers.ts";
import type { NodeServices } from "./node-services.ts";

export interface AllNodesQuestion<Answer> {
  readonly here: () => Promise<Answer>;
  /** As a caller would write it; with a body it is a POST. */
  readonly path: (node: string) => string;
  readonly body?: (node: string) => unknown;
  readonly read: (body: unknown) => Answer;
  readonly deadlineMs?: number;
  /** Who is asked; everybody without it. */
  readonly only?: (node: string) => boolean;
}

export interface NodeAnswers<Answer> {
  /** Of those who answered, this node first if it was asked. */
  readonly answers: readonly { readonly node: string; readonly answer: Answer }[];
  /** What the others have is missing. */
  readonly partial: boolean;
  readonly unreachable: readonly string[];
}

export async function askAllNodes<Answer>(
  services: Pick<NodeServices, "identity" | "cluster" | "peers" | "clock" | "guarantees">,
  inbound: Inbound,
  { here, path, body, read, deadlineMs, only }: AllNodesQuestion<Answer>,
): Promise<NodeAnswers<Answer>> {
  const { identity, cluster, peers, clock } = services;
  if (!asksOthers(services, inbound)) {
    return { answers: [{ node: identity.name, answer: await here() }], partial: false, unreachable: [] };
  }
  const answers: NodeAnswer<Answer>[] = await fanOut<Answer>({
    nodes: cluster.nodes().filter(({ name }) => only?.(name) !== false),
    self: identity.name,
    here,
    request: ({ name }): PeerRequest => {
      const hop = hopPath(path(name), { sentAt: Math.floor(clock.now()) });
      const as = principalHeader(inbound.principal);
      if (!body) return { method: "GET", path: hop, headers: as };
      const headers = { "content-type": "application/json", ...as };
      return { method: "POST", path: hop, headers, body: JSON.stringify(body(name)) };
    },
    call: (url, request, options) => peers!.call(url, request, options),
    read,
    ...(deadlineMs !== undefined && { deadlineMs }),
  });
  const reached: { node: string; answer: Answer }[] = answers.flatMap(({ node, answer }) =>
    answer === null ? [] : [{ node: node.name, answer }],
  );
  const unreachable = answers.filter(({ answer }) => answer === null).map(({ node }) => node.name);
  reached.sort((a, b) => Number(b.node === identity.name) - Number(a.node === identity.name));
  return { answers: reached, partial: unreachable.length > 0, unreachable };
}

export function asksOthers(
  { peers, guarantees }: Pick<NodeServices, "peers" | "guarantees">,
  { from }: Inbound,
): boolean {
  return peers != null && !guarantees.shared && from === null;
}

export function searchOf(query: Readonly<Record<string, unknown>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  return search.size === 0 ? "" : `?${search.toString()}`;
}

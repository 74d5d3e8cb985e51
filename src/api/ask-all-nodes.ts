/**
 * Asks all nodes where each has its own store, and merges their lists page by page. A node that is asked by another one
 * answers for itself alone, so a request is never passed on twice.
 */

import { bounded } from "./bodies/fields.ts";
import { BatonError } from "../core/errors.ts";
import type { NodeInfo } from "../core/node.ts";
import type { PeerRequest } from "../transport/transport.ts";
import { hopPath, principalHeader, type Inbound } from "../transport/hop-headers.ts";
import type { NodeServices } from "./node-services.ts";

/** A page about the whole cluster waits no longer than this for a slow node; with the rest it is there within 1.5 s. */
const FAN_OUT_MS = 1_200;

interface AllNodesQuestion<Answer> {
  readonly here: () => Promise<Answer>;
  /** As a caller would write it; with a body it is a POST. */
  readonly path: (node: string) => string;
  readonly body?: (node: string) => unknown;
  /** Of a body that was answered with 200; a throw counts as no answer. */
  readonly read: (body: unknown) => Answer;
  readonly deadlineMs?: number;
  readonly only?: (node: string) => boolean;
}

type Asking = Pick<NodeServices, "identity" | "cluster" | "peers" | "clock" | "guarantees">;

/** The answers of those who gave one, this node first if it was asked. */
export async function askAllNodes<Answer>(
  services: Asking,
  inbound: Inbound,
  { here, path, body, read, deadlineMs = FAN_OUT_MS, only }: AllNodesQuestion<Answer>,
) {
  const { identity, cluster, peers, clock } = services;
  const self = identity.name;
  if (!asksOthers(services, inbound)) {
    const nodes = [{ name: self as string, reachable: true }];
    const answers = [{ node: self as string, answer: await here() }];
    return { answers, nodes, partial: false, unreachable: [] as string[] };
  }
  const requestTo = (name: string): PeerRequest => {
    const hop = hopPath(path(name), { sentAt: Math.floor(clock.now()) });
    const as = principalHeader(inbound.principal);
    if (!body) return { method: "GET", path: hop, headers: as };
    const headers = { "content-type": "application/json", ...as };
    return { method: "POST", path: hop, headers, body: JSON.stringify(body(name)) };
  };
  const ask = async ({ name, url, alive }: NodeInfo): Promise<Answer | null> => {
    // A failure of this node itself is thrown.
    if (name === self) return here();
    // A silent node is not asked: each request would wait for the whole time.
    if (url === null || !alive) return null;
    const outcome = await peers!.call(url, requestTo(name), { deadlineMs, to: name });
    if (outcome.outcome !== "reply" || outcome.status !== 200) return null;
    try {
      return read(JSON.parse(outcome.body));
    } catch {
      return null;
    }
  };
  const asked = cluster.nodes().filter(({ name }) => only?.(name) !== false);
  const all = await Promise.all(asked.map(async (node) => ({ node, answer: await ask(node) })));
  const answers = all
    .flatMap(({ node, answer }) => (answer === null ? [] : [{ node: node.name, answer }]))
    .sort((a, b) => Number(b.node === self) - Number(a.node === self));
  const nodes = all.map(({ node, answer }) => ({ name: node.name, reachable: answer !== null }));
  const unreachable = nodes.filter(({ reachable }) => !reachable).map(({ name }) => name);
  return { answers, nodes, partial: unreachable.length > 0, unreachable };
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

/** The cursor of an earlier answer; one of a list of all nodes has a place for each of them. */
export const Cursor = bounded(8_192, "the next_cursor of an earlier answer, to the same query");

/** For each node, the place in its own list: `node-a:17,node-b:9`. Null for the end: no node has more. */
export function writeCursor(places: ReadonlyMap<string, string>): string | null {
  return Array.from(places, ([node, place]) => `${node}:${place}`).join(",") || null;
}

/** A node that is missing in it has no more, or could not be reached when the list began. */
export function readCursor<Place>(
  text: string,
  readPlace: (place: string) => Place | null,
): ReadonlyMap<string, Place> {
  const places = new Map<string, Place>();
  for (const entry of text.split(",")) {
    const colon = entry.indexOf(":");
    const place = colon < 1 ? null : readPlace(entry.slice(colon + 1));
    if (place === null) throw badCursor();
    places.set(entry.slice(0, colon), place);
  }
  return places;
}

export function badCursor(): BatonError {
  const message =
    '"cursor" is not the next_cursor of an earlier answer to the same query; leave it out to start at the newest';
  return new BatonError("BAD_REQUEST", message, { field: "cursor" });
}

interface NodePage<Item> {
  readonly items: readonly Item[];
  readonly cursor: string | null;
  readonly count?: number | null;
}

interface PageQuery {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

interface MergedList<Item> {
  readonly here: (query: PageQuery) => Promise<NodePage<Item>>;
  readonly path: (query: PageQuery) => string;
  readonly read: (body: unknown) => NodePage<Item>;
  readonly idOf: (item: Item) => string;
  readonly isNewer: (a: Item, b: Item) => boolean;
}

const LIMIT_MAX = 1_000;

interface Place {
  /** Of the node's own list; null for its beginning. */
  readonly cursor: string | null;
  /** The end of the id of the last item that was taken from the page behind the cursor. */
  readonly last: string | null;
  readonly taken: number;
}
const START: Place = { cursor: null, last: null, taken: 0 };
/** People copy cursors. Of the items of one page, whose number is bounded, no two end alike in so many characters. */
const LAST_LENGTH = 10;

function writePlace({ cursor, last, taken }: Place): string {
  return last === null ? (cursor ?? "") : `${cursor ?? ""}.${taken}.${last}`;
}

function readPlace(text: string): Place | null {
  const [, cursor, taken, last] = /^(\d{0,16})(?:\.(\d{1,4})\.(.+))?$/.exec(text) ?? [];
  if (cursor === undefined) return null;
  return { cursor: cursor || null, last: last ?? null, taken: Number(taken ?? 0) };
}

/** A page of the lists of all nodes. A page of a node that was not taken completely is read again with the next one. */
export async function mergedPage<Item>(
  services: Asking,
  inbound: Inbound,
  { limit, cursor }: PageQuery,
  { here, path, read, idOf, isNewer }: MergedList<Item>,
) {
  const begun = cursor === undefined ? null : readCursor(cursor, readPlace);
  const placeOf = (node: string): Place => begun?.get(node) ?? START;
  const asked = (node: string): PageQuery => {
    const { cursor: from, taken } = placeOf(node);
    return { limit: Math.min(limit + taken, LIMIT_MAX), ...(from !== null && { cursor: from }) };
  };
  const asking = await askAllNodes<NodePage<Item>>(services, inbound, {
    only: (node) => begun === null || begun.has(node),
    here: () => here(asked(services.identity.name)),
    path: (node) => path(asked(node)),
    read,
  });
  const pages = asking.answers.map(({ node, answer }) => ({
    items: untaken(answer.items, placeOf(node), idOf),
    more: answer.cursor !== null,
  }));
  const { items, taken } = mergePages(pages, limit, isNewer);
  // A node that was not reached is not waited for: the list would never end.
  const places = new Map<string, string>();
  asking.answers.forEach(({ node, answer }, at) => {
    const { items: own, more } = pages[at]!;
    const [before, count] = [placeOf(node), taken[at]!];
    if (count < own.length) {
      const last = count > 0 ? idOf(own[count - 1]!).slice(-LAST_LENGTH) : before.last;
      places.set(node, writePlace({ cursor: before.cursor, last, taken: before.taken + count }));
    } else if (more) places.set(node, writePlace({ ...START, cursor: answer.cursor }));
  });
  return { ...asking, items: [...items], nextCursor: writeCursor(places) };
}

/** New items stand before those that were taken meanwhile, so the last one taken tells more than their number. */
function untaken<Item>(
  items: readonly Item[],
  { last, taken }: Place,
  idOf: (item: Item) => string,
): readonly Item[] {
  if (last === null) return items;
  const at = items.findIndex((item) => idOf(item).endsWith(last));
  return items.slice(at < 0 ? taken : at + 1);
}

/**
 * The newest of all pages, and how many of each were taken. Stops where a page ends that has `more` at its node: that may
 * be newer than the rest of the others.
 */
export function mergePages<Item>(
  pages: readonly { readonly items: readonly Item[]; readonly more: boolean }[],
  limit: number,
  isBefore: (a: Item, b: Item) => boolean,
): { readonly items: readonly Item[]; readonly taken: readonly number[] } {
  const taken = pages.map(() => 0);
  const items: Item[] = [];
  while (items.length < limit) {
    let best = -1;
    for (let i = 0; i < pages.length; i++) {
      const head = pages[i]!.items[taken[i]!];
      if (head === undefined) {
        if (pages[i]!.more) return { items, taken };
        continue;
      }
      if (best < 0 || isBefore(head, pages[best]!.items[taken[best]!]!)) best = i;
    }
    if (best < 0) break;
    items.push(pages[best]!.items[taken[best]!]!);
    taken[best]!++;
  }
  return { items, taken };
}

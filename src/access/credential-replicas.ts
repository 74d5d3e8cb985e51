/**
 * Credentials in a cluster whose nodes have their own stores: every node has all of them.
 *
 * A node that changes a credential sends it to all nodes that it can reach, and waits for them for a moment. In
 * addition each node compares a digest with the others every few seconds, and reads their credentials where it differs.
 * `merge` (core/access/credential.ts) resolves conflicts, in the same way on every node.
 *
 *   POST /peer/access            {credentials, next: null}   store these too
 *   GET  /peer/access/digest     {digest}
 *   GET  /peer/access?after=id   {credentials, next}         a page of all
 */

import { isForgotten, type Credential, CREDENTIAL_KINDS } from "../core/access/credential.ts";
import { BatonError } from "../core/errors.ts";
import type { NodeInfo } from "../core/node.ts";
import { Loop } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";
import type { Outcome, PeerReply, PeerRequest, ReceivedRequest } from "../transport/transport.ts";
import type { Credentials } from "./credentials.ts";
import { createHash } from "node:crypto";
import { z } from "zod";
import { ACCESS_NAME, PERMISSIONS } from "../core/access/permissions.ts";

const Text = z.string().min(1).max(256);
const Instant = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

const CredentialWire = z.object({
  id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  kind: z.enum(CREDENTIAL_KINDS),
  name: z.string().regex(ACCESS_NAME),
  permission: z.enum(PERMISSIONS),
  secret: Text.nullable(),
  owner: Text.nullable(),
  createdAt: Instant,
  createdBy: Text,
  expiresAt: Instant.nullable(),
  lastUsedAt: Instant.nullable(),
  removedAt: Instant.nullable(),
  version: z.number().int().min(1).max(Number.MAX_SAFE_INTEGER),
  node: Text,
});

/** So many in one message: a page is far below the largest body that a node takes. */
export const PAGE_MAX = 500;

const PageWire = z.object({
  credentials: z.array(CredentialWire).max(PAGE_MAX),
  /** Behind which id it goes on; null at the end. */
  next: Text.nullable(),
});
export type Page = z.output<typeof PageWire>;

/** Null for what no node of ours sends. */
export function readPage(text: string): Page | null {
  try {
    return PageWire.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

export function pageAfter(credentials: Iterable<Credential>, after: string): Page {
  const rest = sorted(credentials).filter(({ id }) => id > after);
  const page = rest.slice(0, PAGE_MAX);
  return { credentials: page, next: rest.length > page.length ? page.at(-1)!.id : null };
}

/** The same for the same credentials, whatever order they came in. */
export function digestOfAll(credentials: Iterable<Credential>): string {
  const sum = createHash("sha256");
  for (const each of sorted(credentials)) {
    const { id, version, node, removedAt, lastUsedAt } = each;
    sum.update(JSON.stringify([id, version, node, removedAt, lastUsedAt, each.secret]));
  }
  return sum.digest("base64url");
}

function sorted(credentials: Iterable<Credential>): Credential[] {
  return [...credentials].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** How the other nodes are reached. */
export interface CredentialPeers {
  readonly nodes: () => readonly NodeInfo[];
  readonly call: (node: NodeInfo, request: PeerRequest, deadlineMs: number) => Promise<Outcome>;
}

export const ACCESS_PATH = "/peer/access";
const DIGEST_PATH = `${ACCESS_PATH}/digest`;
/** Longer, and a revocation that did not get through is not everywhere within five seconds. */
const COMPARE_MS = 3_000;
const CALL_MS = 1_500;
/** How long a change waits for the other nodes. */
const SEND_MS = 1_000;
/** Compared with in one round; larger clusters take their turns, and receive changes at once anyway. */
const ASKED_MAX = 8;

export class CredentialReplicas extends Lifecycle {
  readonly #platform: Pick<Platform, "clock" | "log" | "identity">;
  readonly #credentials: Pick<Credentials, "cache" | "merge" | "subscribe">;
  readonly #peers: CredentialPeers;
  readonly #loop: Loop;
  /** Nodes whose credentials this incarnation has read completely. */
  readonly #heard = new Set<string>();
  #turn = 0;

  constructor(
    platform: Pick<Platform, "clock" | "log" | "identity">,
    credentials: Pick<Credentials, "cache" | "merge" | "subscribe">,
    peers: CredentialPeers,
  ) {
    super();
    this.#platform = platform;
    this.#credentials = credentials;
    this.#peers = peers;
    this.#loop = new Loop(platform.clock, () => this.#compareAll());
    credentials.subscribe((changed) => this.send(changed));
  }

  /** Whether this node knows all that the other one knew at some time since its start. */
  hasHeard(node: string): boolean {
    return node === this.#platform.identity.name || this.#heard.has(node);
  }

  /** Resolves when those that can be reached know, or after a moment. */
  async send(changed: readonly Credential[]): Promise<void> {
    if (changed.length === 0) return;
    const pages = Array.from({ length: Math.ceil(changed.length / PAGE_MAX) }, (_, at) =>
      JSON.stringify({ credentials: changed.slice(at * PAGE_MAX, (at + 1) * PAGE_MAX), next: null }),
    );
    await Promise.all(
      this.#others().map(async (node) => {
        for (const body of pages)
          await this.#peers.call(node, { method: "POST", path: ACCESS_PATH, body }, SEND_MS);
      }),
    );
  }

  async handle({ method, path, body, from }: ReceivedRequest): Promise<PeerReply> {
    const [route, search = ""] = path.split("?", 2) as [string, string?];
    const all = this.#known();
    if (route === DIGEST_PATH && method === "GET") return json({ digest: digestOfAll(all) });
    if (route !== ACCESS_PATH) throw new BatonError("NOT_FOUND", `there is nothing for nodes at ${route}`);
    if (method === "GET") return json(pageAfter(all, new URLSearchParams(search).get("after") ?? ""));
    const page = readPage(body);
    if (!page) throw new BatonError("BAD_REQUEST", `what ${from} sends are no credentials`);
    await this.#credentials.merge(page.credentials);
    return json({ kept: page.credentials.length });
  }

  protected override onStart(): void {
    this.#loop.start();
  }

  protected override onStop(): Promise<void> {
    return this.#loop.stop();
  }

  async #compareAll(): Promise<number> {
    const asked = this.#inTurn();
    await Promise.all(
      asked.map((node) =>
        this.#compare(node).catch((error: unknown) =>
          this.#platform.log.warn(
            { err: error, peer: node.name },
            "credentials were not compared; trying again",
          ),
        ),
      ),
    );
    // Often at first, because a new node knows no other yet.
    const isNew = this.#others().some(({ name }) => !this.#heard.has(name)) || asked.length === 0;
    return isNew ? COMPARE_MS / 6 : COMPARE_MS;
  }

  async #compare(node: NodeInfo): Promise<void> {
    const text = await this.#ask(node, DIGEST_PATH);
    if (text === null) return;
    const { digest } = JSON.parse(text) as { digest?: unknown };
    if (digest !== digestOfAll(this.#known())) await this.#readAll(node);
    else this.#heard.add(node.name);
  }

  async #readAll(node: NodeInfo): Promise<void> {
    for (let after: string | null = ""; after !== null;) {
      const text = await this.#ask(node, `${ACCESS_PATH}?after=${encodeURIComponent(after)}`);
      const page = text === null ? null : readPage(text);
      if (!page) return;
      await this.#credentials.merge(page.credentials);
      after = page.next;
    }
    this.#heard.add(node.name);
  }

  async #ask(node: NodeInfo, path: string): Promise<string | null> {
    const outcome = await this.#peers.call(node, { method: "GET", path }, CALL_MS);
    return outcome.outcome === "reply" && outcome.status === 200 ? outcome.body : null;
  }

  #known(): Credential[] {
    const now = this.#platform.clock.now();
    return [...this.#credentials.cache.all()].filter((each) => !isForgotten(each, now));
  }

  #others(): readonly NodeInfo[] {
    const { name } = this.#platform.identity;
    return this.#peers.nodes().filter((node) => node.name !== name && node.alive && node.url !== null);
  }

  #inTurn(): readonly NodeInfo[] {
    const others = this.#others();
    if (others.length <= ASKED_MAX) return others;
    const from = (this.#turn += ASKED_MAX) % others.length;
    return [...others.slice(from), ...others.slice(0, from)].slice(0, ASKED_MAX);
  }
}

function json(body: unknown): PeerReply {
  return { status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

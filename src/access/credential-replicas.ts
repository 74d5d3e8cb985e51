/**
 * Credentials in a cluster whose nodes have their own stores: every node has all of them.
 *
 * A node that changes a credential sends it to all nodes that it can reach, and waits for them for a moment. In
 * addition each node compares a digest with the others every few seconds, and reads their credentials where it differs.
 * `merge` (core/access/credential.ts) resolves conflicts, in the same way on every node.
 */

import { isForgotten, type Credential } from "../core/access/credential.ts";
import type { NodeInfo } from "../core/node.ts";
import { Loop } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";
import { CREDENTIALS_MAX, type CredentialPage } from "../peers/rpc/peer-routes.ts";
import { servePeers, type PeerAnswer, type PeerClient } from "../peers/rpc/peer-rpc.ts";
import type { PeerHandler } from "../transport/transport.ts";
import type { Credentials } from "./credentials.ts";
import { createHash } from "node:crypto";

export function pageAfter(credentials: Iterable<Credential>, after: string): CredentialPage {
  const rest = sorted(credentials).filter(({ id }) => id > after);
  const page = rest.slice(0, CREDENTIALS_MAX);
  return { credentials: page, next: rest.length > page.length ? page.at(-1)!.id : null };
}

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

export interface CredentialPeers {
  readonly nodes: () => readonly NodeInfo[];
  readonly client: Pick<PeerClient, "ask">;
}

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
  readonly handle: PeerHandler;
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
    this.handle = servePeers(platform, {
      credentials: async ({ credentials: sent }) => {
        await credentials.merge(sent);
        return { kept: sent.length };
      },
      credentialsDigest: () => ({ digest: digestOfAll(this.#known()) }),
      credentialsAfter: ({ after }) => pageAfter(this.#known(), after),
    });
    credentials.subscribe((changed) => this.send(changed));
  }

  /** Whether this node knows all that the other one knew at some time since its start. */
  hasHeard(node: string): boolean {
    return node === this.#platform.identity.name || this.#heard.has(node);
  }

  /** Resolves when those that can be reached know, or after a moment. */
  async send(changed: readonly Credential[]): Promise<void> {
    if (changed.length === 0) return;
    const { client } = this.#peers;
    await Promise.all(
      this.#others().map(async (node) => {
        for (let at = 0; at < changed.length; at += CREDENTIALS_MAX) {
          const credentials = changed.slice(at, at + CREDENTIALS_MAX);
          await client.ask(node, "credentials", { credentials, next: null }, { deadlineMs: SEND_MS });
        }
      }),
    );
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
    const answer = await this.#peers.client.ask(node, "credentialsDigest", {}, { deadlineMs: CALL_MS });
    if (answer.got !== "answer") return;
    if (answer.value.digest !== digestOfAll(this.#known())) await this.#readAll(node);
    else this.#heard.add(node.name);
  }

  async #readAll(node: NodeInfo): Promise<void> {
    const { client } = this.#peers;
    const options = { deadlineMs: CALL_MS };
    for (let after: string | null = ""; after !== null;) {
      const page: PeerAnswer<CredentialPage> = await client.ask(node, "credentialsAfter", { after }, options);
      if (page.got !== "answer") return;
      await this.#credentials.merge(page.value.credentials);
      after = page.value.next;
    }
    this.#heard.add(node.name);
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

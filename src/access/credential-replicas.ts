/**
 * Credentials in a cluster whose nodes have their own stores: every node has all of them.
 *
 * A node that changes a credential sends it to all nodes that it can reach, and waits for them for a moment. In
 * addition each node compares a digest with the others every few seconds, and reads their credentials where it differs.
 * `merge` (core/access/credential.ts) resolves conflicts, in the same way on every node.
 */

import { isForgotten, type Credential } from "../core/access/credential.ts";
import type { NodeInfo } from "../core/node.ts";
import { Loop, split } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import { serviceOf } from "../platform/service.ts";
import { CREDENTIALS_MAX, type CredentialPage } from "../peers/rpc/peer-routes.ts";
import { servePeers, type PeerAnswer, type PeerClient } from "../peers/rpc/peer-rpc.ts";
import type { Credentials } from "./credentials.ts";
import { createHash } from "node:crypto";

function pageAfter(credentials: Iterable<Credential>, after: string): CredentialPage {
  const rest = sorted(credentials).filter(({ id }) => id > after);
  const page = rest.slice(0, CREDENTIALS_MAX);
  return { credentials: page, next: rest.length > page.length ? page.at(-1)!.id : null };
}

function digestOfAll(credentials: Iterable<Credential>): string {
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

interface CredentialPeers {
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

export type CredentialReplicas = ReturnType<typeof credentialReplicas>;

export function credentialReplicas(
  platform: Pick<Platform, "clock" | "log" | "identity">,
  credentials: Pick<Credentials, "cache" | "merge" | "subscribe">,
  { nodes, client }: CredentialPeers,
) {
  const { clock, log, identity } = platform;
  const loop = new Loop(clock, compareAll);
  const heard = new Set<string>();
  let turn = 0;

  function known(): Credential[] {
    const now = clock.now();
    return [...credentials.cache.all()].filter((each) => !isForgotten(each, now));
  }

  function others(): readonly NodeInfo[] {
    return nodes().filter((node) => node.name !== identity.name && node.alive && node.url !== null);
  }

  function inTurn(): readonly NodeInfo[] {
    const all = others();
    if (all.length <= ASKED_MAX) return all;
    const from = (turn += ASKED_MAX) % all.length;
    return [...all.slice(from), ...all.slice(0, from)].slice(0, ASKED_MAX);
  }

  /** Resolves when those that can be reached know, or after a moment. */
  async function send(changed: readonly Credential[]): Promise<void> {
    if (changed.length === 0) return;
    await Promise.all(
      others().map(async (node) => {
        for (const part of split(changed, CREDENTIALS_MAX))
          await client.ask(node, "credentials", { credentials: part, next: null }, { deadlineMs: SEND_MS });
      }),
    );
  }

  async function compareAll(): Promise<number> {
    const asked = inTurn();
    await Promise.all(
      asked.map((node) =>
        compare(node).catch((error: unknown) =>
          log.warn({ err: error, peer: node.name }, "credentials were not compared; trying again"),
        ),
      ),
    );
    // Often at first, because a new node knows no other yet.
    const isNew = others().some(({ name }) => !heard.has(name)) || asked.length === 0;
    return isNew ? COMPARE_MS / 6 : COMPARE_MS;
  }

  async function compare(node: NodeInfo): Promise<void> {
    const answer = await client.ask(node, "credentialsDigest", {}, { deadlineMs: CALL_MS });
    if (answer.got !== "answer") return;
    if (answer.value.digest !== digestOfAll(known())) await readAll(node);
    else heard.add(node.name);
  }

  async function readAll(node: NodeInfo): Promise<void> {
    const options = { deadlineMs: CALL_MS };
    for (let after: string | null = ""; after !== null;) {
      const page: PeerAnswer<CredentialPage> = await client.ask(node, "credentialsAfter", { after }, options);
      if (page.got !== "answer") return;
      await credentials.merge(page.value.credentials);
      after = page.value.next;
    }
    heard.add(node.name);
  }

  credentials.subscribe(send);
  return Object.assign(
    serviceOf(
      () => loop.start(),
      () => loop.stop(),
    ),
    {
      handle: servePeers(platform, {
        credentials: async ({ credentials: sent }) => {
          await credentials.merge(sent);
          return { kept: sent.length };
        },
        credentialsDigest: () => ({ digest: digestOfAll(known()) }),
        credentialsAfter: ({ after }) => pageAfter(known(), after),
      }),

      /** Whether this node knows all that the other one knew at some time since its start. */
      hasHeard: (node: string): boolean => node === identity.name || heard.has(node),
    },
  );
}

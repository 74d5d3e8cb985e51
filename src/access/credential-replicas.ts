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

import { isForgotten } from "../core/access/credential.ts";
import type { Credential } from "../core/access/credential.ts";
import { BatonError } from "../core/errors.ts";
import type { NodeInfo } from "../core/node.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import { Lifecycle } from "../platform/service.ts";
import type { Outcome, PeerReply, PeerRequest, ReceivedRequest } from "../transport/transport.ts";
import { digestOfAll, PAGE_MAX, pageAfter, readPage } from "./credential-messages.ts";
import type { Credentials } from "./credentials.ts";

export interface CredentialReplicasOptions {
  readonly self: string;
  readonly credentials: Pick<Credentials, "cache" | "merge" | "subscribe">;
  readonly nodes: () => readonly NodeInfo[];
  readonly call: (node: NodeInfo, request: PeerRequest, deadlineMs: number) => Promise<Outcome>;
  readonly clock: Clock;
  readonly log: Log;
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
  readonly #o: CredentialReplicasOptions;
  /** Nodes whose credentials this incarnation has read completely. */
  readonly #heard = new Set<string>();
  #stopped = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #turn = 0;

  constructor(options: CredentialReplicasOptions) {
    super();
    this.#o = options;
    options.credentials.subscribe((changed) => this.send(changed));
  }

  /** Whether this node knows all that the other one knew at some time since its start. */
  hasHeard(node: string): boolean {
    return node === this.#o.self || this.#heard.has(node);
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
          await this.#o.call(node, { method: "POST", path: ACCESS_PATH, body }, SEND_MS);
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
    await this.#o.credentials.merge(page.credentials);
    return json({ kept: page.credentials.length });
  }

  protected override onStart(): void {
    this.#stopped = new AbortController();
    this.#loop = this.#run(this.#stopped.signal);
  }

  protected override async onStop(): Promise<void> {
    this.#stopped.abort();
    await this.#loop;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#o;
    while (!signal.aborted) {
      const asked = this.#inTurn();
      await Promise.all(
        asked.map((node) =>
          this.#compare(node).catch((error: unknown) =>
            log.warn({ err: error, peer: node.name }, "credentials were not compared; trying again"),
          ),
        ),
      );
      // Often at first, because a new node knows no other yet.
      const isNew = this.#others().some(({ name }) => !this.#heard.has(name)) || asked.length === 0;
      await clock.sleep(isNew ? COMPARE_MS / 6 : COMPARE_MS, signal);
    }
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
      await this.#o.credentials.merge(page.credentials);
      after = page.next;
    }
    this.#heard.add(node.name);
  }

  async #ask(node: NodeInfo, path: string): Promise<string | null> {
    const outcome = await this.#o.call(node, { method: "GET", path }, CALL_MS);
    return outcome.outcome === "reply" && outcome.status === 200 ? outcome.body : null;
  }

  #known(): Credential[] {
    const now = this.#o.clock.now();
    return [...this.#o.credentials.cache.all()].filter((each) => !isForgotten(each, now));
  }

  #others(): readonly NodeInfo[] {
    const { nodes, self } = this.#o;
    return nodes().filter((node) => node.name !== self && node.alive && node.url !== null);
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

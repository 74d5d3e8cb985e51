/**
 * A connection to the leader. It knows several nodes, calls the last known leader first, follows the leader that a
 * standby names, and otherwise tries all other nodes in turn. One call is one such round: if no node in it leads, it
 * rejects, and the caller decides whether and when to try again.
 */

import type { Clock } from "../../platform/clock.ts";
import type { Answer, Call, Connection } from "./connection.ts";
import { UndiciConnection } from "./connection.ts";
import type { NotLeaderBody } from "../controller-bodies.ts";

import { BatonClientError } from "../client-error.ts";
import { failed, heardOf, learned, nextNode, nodeList, stoodBy, worked, type NodeList } from "./node-list.ts";

export interface LeaderConnectionOptions {
  /** At least one node that is likely to be there; it tells of the others. */
  readonly urls: readonly string[];
  readonly clock: Clock;
  /** Shown to every node that is asked: those given, and those that they name. */
  readonly token?: string | undefined;
  /** How a node is reached; over HTTP unless told otherwise. */
  readonly connect?: (url: string) => Connection;
}

export interface LeaderCall extends Omit<Call, "body"> {
  /** A function is asked anew for each node that is tried, and told whether one before may have done it and not answered. */
  readonly body?: string | ((maybeDone: boolean) => string);
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Left and made again elsewhere as soon as another call finds that another node leads: for calls that wait long, or may be repeated. */
  readonly moves?: boolean;
}

export interface LeaderAnswer {
  readonly status: number;
  /** Null for an answer without a body. */
  readonly body: unknown;
  readonly url: string;
}

interface Waiting {
  readonly url: string;
  readonly leave: AbortController;
}

/** What a node that is asked for the list of nodes may take. It is asked beside the work and holds up nothing. */
const LEARN_TIMEOUT_MS = 5_000;
/** How old the list of nodes may become. Longer, and an agent that outlives all nodes it knew finds none any more. */
const LEARN_EVERY_MS = 30_000;

export class LeaderConnection {
  readonly #o: LeaderConnectionOptions;
  readonly #connections = new Map<string, Connection>();
  readonly #waiting = new Set<Waiting>();
  #list: NodeList;
  #epoch = 0;
  #looks = 0;
  #learnedAt = -Infinity;
  #learning: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: LeaderConnectionOptions) {
    this.#o = options;
    this.#list = nodeList(options.urls);
    // An address that is none is told at once, and not by a call that fails later.
    for (const url of this.#list.known) this.#connection(url);
  }

  /** Those that were given, and those that were learned of. */
  get nodes(): readonly string[] {
    return this.#list.known;
  }

  /** Who answered as leader last. */
  get leader(): string | null {
    return this.#list.leader;
  }

  /** The highest epoch that was heard of. */
  get epoch(): number {
    return this.#epoch;
  }

  /**
   * The answer of a leader, whatever its status. Rejects with UNREACHABLE when no node could be reached, NO_LEADER when some
   * could and none of them leads, and ABORTED by the signal.
   */
  async call(call: LeaderCall): Promise<LeaderAnswer> {
    const reasons = new Map<string, string>();
    let reached = false;
    let maybeDone = false;
    for (let url = this.#next(reasons, null); url !== null;) {
      let hint: string | null = null;
      try {
        const answer = await this.#ask(url, call, maybeDone);
        reached = true;
        if (!isRefusedHere(answer)) {
          this.#settle(url, epochIn(answer));
          return answer;
        }
        // A node that has trouble with its store does not know what became of it either.
        maybeDone ||= answer.status >= 500;
        const told = answer.body as Partial<NotLeaderBody> | null;
        this.#heardOf(epochIn(answer));
        if (told?.error === "NOT_LEADER") hint = told.leader_url ?? null;
        reasons.set(url, refusalText(answer));
      } catch (error) {
        if (!(error instanceof BatonClientError) || call.signal?.aborted) throw error;
        maybeDone ||= error.maybeDone;
        reached ||= error.code === "BAD_REPLY";
        // Left for another leader: that one is asked next, and the one that was left is not held against it.
        if (error.code === "ABORTED") hint = this.leader;
        else this.#list = failed(this.#list, url);
        reasons.set(url, error.message);
      }
      this.#list = stoodBy(this.#list, url);
      url = this.#next(reasons, hint)!;
    }
    void this.learn();
    throw nobody(reasons, reached, maybeDone);
  }

  /**
   * Asks another node than the leader who leads, and takes calls that wait along when somebody else does by now: one that hangs does not
   * tell. `unheard` when no other answered, `alone` when none is known.
   */
  async look(timeoutMs: number, signal: AbortSignal): Promise<"looked" | "unheard" | "alone"> {
    const others = this.nodes.filter((url) => url !== this.leader);
    const url = others[this.#looks++ % others.length];
    if (url === undefined) return "alone";
    try {
      const call: Call = { method: "GET", path: "/role" };
      const answer = read(url, await this.#connection(url).call(call, timeoutMs, signal));
      if (answer.status !== 200) return "unheard";
      const epoch = epochIn(answer);
      // Whoever told knows the way.
      if (epoch > this.#epoch) this.#follow(url);
      this.#heardOf(epoch);
      return "looked";
    } catch {
      return "unheard";
    }
  }

  /** Asks any node for the list of all. Does nothing when the list is young, and fails quietly: it is asked for again. */
  learn(): Promise<void> {
    const { clock } = this.#o;
    if (this.#closed || clock.monotonic() - this.#learnedAt < LEARN_EVERY_MS) return this.#learning;
    this.#learnedAt = clock.monotonic();
    return (this.#learning = this.#learn());
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#connections.values()].map((connection) => connection.close()));
    await this.#learning;
  }

  async #ask(url: string, call: LeaderCall, maybeDone: boolean): Promise<LeaderAnswer> {
    const { timeoutMs, signal, moves, ...rest } = call;
    const body = typeof rest.body === "function" ? rest.body(maybeDone) : rest.body;
    const request: Call = { ...rest, body };
    if (!moves) return read(url, await this.#connection(url).call(request, timeoutMs, signal));
    const waiting: Waiting = { url, leave: new AbortController() };
    const either = signal ? AbortSignal.any([signal, waiting.leave.signal]) : waiting.leave.signal;
    this.#waiting.add(waiting);
    try {
      return read(url, await this.#connection(url).call(request, timeoutMs, either));
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  /** The one named, if it was not asked yet in this round; else whoever led last, and else the first of the others. */
  #next(asked: ReadonlyMap<string, string>, hint: string | null): string | null {
    const hints = hint === null ? [] : [hint];
    this.#list = heardOf(this.#list, hints);
    return nextNode(this.#list, { asked, leader: true, hints });
  }

  #settle(url: string, epoch: number): void {
    this.#heardOf(epoch);
    if (this.leader !== url) this.#follow(url);
    void this.learn();
  }

  #follow(url: string): void {
    this.#list = worked(this.#list, url, true);
    for (const waiting of this.#waiting) if (waiting.url !== url) waiting.leave.abort();
  }

  #heardOf(epoch: number): void {
    if (epoch > this.#epoch) this.#epoch = epoch;
  }

  async #learn(): Promise<void> {
    const call: Call = { method: "GET", path: "/cluster/nodes" };
    // The leader last: it has other things to do.
    const others = this.nodes.filter((url) => url !== this.leader);
    for (const url of this.leader === null ? others : [...others, this.leader]) {
      try {
        const { status, body } = read(url, await this.#connection(url).call(call, LEARN_TIMEOUT_MS));
        if (status !== 200) continue;
        const { nodes } = body as { nodes: readonly { url: string | null }[] };
        return this.#remember(nodes.flatMap(({ url: listed }) => listed ?? []));
      } catch {
        if (this.#closed) return; // else the next one is asked
      }
    }
    this.#learnedAt = -Infinity;
  }

  #remember(listed: readonly string[]): void {
    this.#list = learned(this.#list, listed);
    for (const [url, connection] of this.#connections) {
      if (this.nodes.includes(url)) continue;
      this.#connections.delete(url);
      void connection.close();
    }
  }

  #connection(url: string): Connection {
    let connection = this.#connections.get(url);
    if (!connection) {
      connection = this.#o.connect?.(url) ?? new UndiciConnection(url, this.#o);
      this.#connections.set(url, connection);
    }
    return connection;
  }
}

/** A node that does not lead, or cannot serve now: another may, and so may this one in a moment. */
function isRefusedHere({ status, body }: LeaderAnswer): boolean {
  if (status >= 500 || status === 429 || status === 408) return true;
  return status === 409 && (body as { error?: unknown } | null)?.error === "NOT_LEADER";
}

function epochIn({ body }: LeaderAnswer): number {
  const epoch = (body as { leader_epoch?: unknown } | null)?.leader_epoch;
  return typeof epoch === "number" ? epoch : 0;
}

function refusalText({ status, body }: LeaderAnswer): string {
  const { error, role } = (body ?? {}) as Partial<Record<string, unknown>>;
  return error === "NOT_LEADER" ? `does not lead (${String(role)})` : `answered ${status} ${String(error)}`;
}

function read(url: string, answer: Answer): LeaderAnswer {
  if (answer.body === "") return { status: answer.status, body: null, url };
  try {
    return { status: answer.status, body: JSON.parse(answer.body) as unknown, url };
  } catch (error) {
    throw new BatonClientError("BAD_REPLY", `what answers at ${url} is not a Baton node`, {
      status: answer.status,
      cause: error,
    });
  }
}

function nobody(
  reasons: ReadonlyMap<string, string>,
  reached: boolean,
  maybeDone: boolean,
): BatonClientError {
  const each = [...reasons].map(([url, why]) => `${url}: ${why}`).join("; ");
  return reached
    ? new BatonClientError("NO_LEADER", `no node leads at the moment (${each})`, { maybeDone })
    : new BatonClientError("UNREACHABLE", `no node can be reached (${each})`, { maybeDone });
}

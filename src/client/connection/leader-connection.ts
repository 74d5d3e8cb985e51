/**
 * A connection to the leader. It knows several nodes, calls the last known leader first, follows the leader that a
 * standby names, and otherwise tries all other nodes in turn. One call is one such round: if no node in it leads, it
 * rejects, and the caller decides whether and when to try again.
 */

import type { Clock } from "../../platform/clock.ts";
import type { Answer, Call, Connection } from "./connection.ts";
import { UndiciConnection } from "./connection.ts";
import type { NotLeaderBody } from "../controller-calls.ts";
import { BatonClientError } from "../client-error.ts";
import { KnownNodes } from "./known-nodes.ts";

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

export class LeaderConnection {
  readonly #nodes: KnownNodes;
  readonly #waiting = new Set<Waiting>();
  #epoch = 0;
  #probes = 0;

  constructor(options: LeaderConnectionOptions) {
    const { connect = (url) => new UndiciConnection(url, options) } = options;
    this.#nodes = new KnownNodes({ ...options, connect, discover: true, anyRole: true });
  }

  /** Those that were given, and those that were learned of. */
  get nodes(): readonly string[] {
    return this.#nodes.all;
  }

  /** Which one answered as leader last. */
  get leader(): string | null {
    return this.#nodes.leader;
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
    let hint: string | null = null;
    for (;;) {
      const url = this.#nodes.next({ asked: reasons, leader: true, hints: hint === null ? [] : [hint] });
      if (url === null) break;
      hint = null;
      try {
        const answer = await this.#ask(url, call, maybeDone);
        reached = true;
        if (!isRefusedHere(answer)) {
          this.#settle(url, epochIn(answer));
          return answer;
        }
        // A node that has trouble with its store does not know what became of it either.
        maybeDone ||= answer.status >= 500;
        const refusal = answer.body as Partial<NotLeaderBody> | null;
        this.#heardOf(epochIn(answer));
        if (refusal?.error === "NOT_LEADER") hint = refusal.leader_url ?? null;
        reasons.set(url, refusalText(answer));
      } catch (error) {
        if (!(error instanceof BatonClientError) || call.signal?.aborted) throw error;
        maybeDone ||= error.maybeDone;
        reached ||= error.code === "BAD_REPLY";
        // Left for another leader: that one is asked next, and the one that was left has not failed.
        if (error.code === "ABORTED") hint = this.leader;
        else this.#nodes.failed(url);
        reasons.set(url, error.message);
      }
      this.#nodes.refused(url, true, hint === null ? [] : [hint]);
    }
    void this.learn();
    throw noLeader(reasons, reached, maybeDone);
  }

  /**
   * Asks a node other than the leader which node leads, because a leader that hangs does not answer. Waiting calls move if another
   * node leads now. `silent` when that node did not answer, `alone` when no other is known.
   */
  async checkLeader(timeoutMs: number, signal: AbortSignal): Promise<"checked" | "silent" | "alone"> {
    const others = this.nodes.filter((url) => url !== this.leader);
    const url = others[this.#probes++ % others.length];
    if (url === undefined) return "alone";
    try {
      const call: Call = { method: "GET", path: "/role" };
      const answer = read(url, await this.#nodes.connection(url).call(call, timeoutMs, signal));
      if (answer.status !== 200) return "silent";
      const epoch = epochIn(answer);
      // The node that reported a newer epoch knows its leader.
      if (epoch > this.#epoch) this.#follow(url);
      this.#heardOf(epoch);
      return "checked";
    } catch {
      return "silent";
    }
  }

  /** Asks any node for the list of all, unless the list is young. Does not reject. */
  learn(): Promise<void> {
    return this.#nodes.learn();
  }

  close(): Promise<void> {
    return this.#nodes.close();
  }

  async #ask(url: string, call: LeaderCall, maybeDone: boolean): Promise<LeaderAnswer> {
    const { timeoutMs, signal, moves, ...rest } = call;
    const body = typeof rest.body === "function" ? rest.body(maybeDone) : rest.body;
    const request: Call = { ...rest, body };
    if (!moves) return read(url, await this.#nodes.connection(url).call(request, timeoutMs, signal));
    const waiting: Waiting = { url, leave: new AbortController() };
    const either = signal ? AbortSignal.any([signal, waiting.leave.signal]) : waiting.leave.signal;
    this.#waiting.add(waiting);
    try {
      return read(url, await this.#nodes.connection(url).call(request, timeoutMs, either));
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  #settle(url: string, epoch: number): void {
    this.#heardOf(epoch);
    this.#follow(url);
  }

  #follow(url: string): void {
    const moved = this.leader !== url;
    this.#nodes.worked(url, true);
    if (moved) for (const waiting of this.#waiting) if (waiting.url !== url) waiting.leave.abort();
  }

  #heardOf(epoch: number): void {
    if (epoch > this.#epoch) this.#epoch = epoch;
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

function noLeader(
  reasons: ReadonlyMap<string, string>,
  reached: boolean,
  maybeDone: boolean,
): BatonClientError {
  const each = [...reasons].map(([url, why]) => `${url}: ${why}`).join("; ");
  return reached
    ? new BatonClientError("NO_LEADER", `no node leads at the moment (${each})`, { maybeDone })
    : new BatonClientError("UNREACHABLE", `no node can be reached (${each})`, { maybeDone });
}

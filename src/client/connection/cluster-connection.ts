/**
 * A connection to the nodes of a cluster. It stays with a node that works and switches to the next when that is safe.
 * It waits for temporary conditions (no leader, a full queue, a forming cluster) for as long as the caller does.
 * Otherwise it reports what is known about the request.
 *
 *   next node ──ask──> answer ──take──> the caller's
 *       ^                 | next: it had no effect, or may be repeated
 *       |                 v
 *       '──── wait, when all were asked
 *
 * `postToLeader` makes one such round for a caller that decides itself when to try again. It also tracks who leads, so
 * that a call that waits at a former leader moves to the next one.
 */

import type { AnswerOf } from "../../api/operation-table.ts";
import type { Clock } from "../../platform/clock.ts";
import { Backoff } from "../../platform/loop.ts";
import type { Random } from "../../platform/random.ts";
import type { Answer, Call, OpenAnswer } from "./connection.ts";
import { CallError, jsonOf, refusalOf } from "../client-error.ts";
import { KnownNodes, type KnownNodesOptions } from "./known-nodes.ts";
import {
  judgeAnswer,
  judgeFailure,
  noLeader,
  outcomeUnknown,
  unanswered,
  type Verdict,
} from "./answer-verdict.ts";

export interface ClusterConnectionOptions extends KnownNodesOptions {
  /** False: each call is tried once, and what became of it is told at once. */
  readonly retry: boolean;
}

/** `keyed`: a store knows the jobs again by their idempotency keys; where every node has its own store, another node does not. */
export type Repeat = "always" | "keyed" | "never";

export interface ClusterCall extends Call {
  /** For all tries together. */
  readonly timeoutMs: number;
  readonly repeat: Repeat;
  readonly leader: boolean;
}

export interface ClusterAnswer extends Answer {
  readonly json: unknown;
  readonly url: string;
}

export interface LeaderCallOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Left and made again elsewhere as soon as another call finds that another node leads: for calls that wait long, or may be repeated. */
  readonly moves?: boolean;
}

/** One try, as long as there are other nodes to ask; the next one has twice as long. Shorter, and a slow store is asked twice. */
const TRY_MS = 5_000;
/** Between two rounds. An election takes about a second. With a smaller limit, hundreds of callers keep the standbys busy. */
const FIRST_WAIT_MS = 100;
const WAIT_MS_MAX = 2_000;
/** Callers who were told the same second do not all come back in it. */
const SPREAD = 0.5;

interface Trying {
  readonly call: ClusterCall;
  readonly round: LeaderRound | null;
  readonly until: number;
  readonly asked: Set<string>;
  readonly waits: Backoff;
  tries: number;
  maybeDone: boolean;
  verdict: Verdict | null;
  error: CallError | null;
}

interface LeaderRound extends LeaderCallOptions {
  readonly body: (maybeDone: boolean) => string;
  readonly reasons: Map<string, CallError>;
}

export class ClusterConnection {
  readonly nodes: KnownNodes;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #retry: boolean;
  /** Calls that are left when another node than theirs leads. */
  readonly #waiting = new Map<AbortController, string>();
  readonly #closing = new AbortController();
  #epoch = 0;
  #checks = 0;

  constructor(
    platform: { readonly clock: Clock; readonly random: Random },
    options: ClusterConnectionOptions,
  ) {
    this.#clock = platform.clock;
    this.#random = platform.random;
    this.#retry = options.retry;
    this.nodes = new KnownNodes(platform.clock, options);
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** The waits between rounds of one caller, spread because all callers lose their leader in the same moment. */
  backoff(): Backoff {
    return new Backoff(FIRST_WAIT_MS, WAIT_MS_MAX, this.#random);
  }

  call(call: ClusterCall): Promise<ClusterAnswer> {
    return this.#call(call, this.#clock.monotonic() + call.timeoutMs, null);
  }

  /**
   * The answer of the leader, whatever its status. One round: the last known leader first, then the one that a standby names, then
   * all others. Rejects with UNREACHABLE when no node could be reached, NO_LEADER when some could and none of them leads, and
   * ABORTED by the signal. `body` is asked anew for each node, with whether one before may have done it and not answered.
   */
  postToLeader(
    path: string,
    body: (maybeDone: boolean) => string,
    options: LeaderCallOptions,
  ): Promise<ClusterAnswer> {
    const { timeoutMs } = options;
    const call: ClusterCall = { method: "POST", path, timeoutMs, repeat: "always", leader: true };
    return this.#call(call, Infinity, { ...options, body, reasons: new Map() });
  }

  /**
   * Asks a node other than the leader which node leads, because a leader that hangs does not answer. Waiting calls move if another
   * node leads now. `silent` when that node did not answer, `alone` when no other is known.
   */
  async checkLeader(timeoutMs: number, signal: AbortSignal): Promise<"checked" | "silent" | "alone"> {
    const others = this.nodes.list.known.filter((url) => url !== this.nodes.list.leader);
    const url = others[this.#checks++ % others.length];
    if (url === undefined) return "alone";
    try {
      const call: Call = { method: "GET", path: "/role" };
      const answer = await this.nodes.connection(url).call(call, timeoutMs, signal);
      if (answer.status !== 200) return "silent";
      const before = this.#epoch;
      this.#heard(jsonOf(answer));
      // The node that reported a newer epoch knows its leader.
      if (this.#epoch > before) this.#follow(url);
      return "checked";
    } catch {
      return "silent";
    }
  }

  /** A stream that only reads, of the first node that gives one. When it breaks, that node is asked last. */
  async open(call: Call, timeoutMs: number, signal: AbortSignal): Promise<OpenAnswer> {
    const asked = new Set<string>();
    const either = AbortSignal.any([signal, this.#closing.signal]);
    for (let hints: readonly string[] = []; ;) {
      this.#checkOpen();
      const url = this.nodes.next({ asked, hints })!;
      asked.add(url);
      const isLast = !this.#retry || this.nodes.next({ asked }) === null;
      try {
        const tryMs = isLast ? timeoutMs : Math.min(timeoutMs, TRY_MS);
        const { status, chunks } = await this.nodes.connection(url).open(call, tryMs, either);
        if (status < 400) {
          this.nodes.worked(url, false);
          return { status, chunks: this.#watched(url, chunks, either) };
        }
        const answer = { status, body: await textOf(chunks) };
        const verdict = judgeAnswer(answer);
        ({ hints } = verdict);
        if (verdict.do !== "take") this.nodes.refused(url, verdict.standby, hints);
        const over = !this.#retry || this.nodes.next({ asked, hints }) === null;
        if (verdict.do === "take" || over) throw refusalOf(answer);
      } catch (error) {
        this.#checkOpen();
        if (!(error instanceof CallError) || error.status !== null || signal.aborted) throw error;
        this.nodes.failed(url);
        if (isLast) throw error;
      }
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.nodes.close();
  }

  async #call(call: ClusterCall, until: number, round: LeaderRound | null): Promise<ClusterAnswer> {
    const first = { asked: new Set<string>(), waits: this.backoff(), tries: 0, maybeDone: false };
    const trying: Trying = { call, round, until, ...first, verdict: null, error: null };
    for (;;) {
      this.#checkOpen();
      const url = await this.#nextFor(trying);
      if (url !== null) {
        const answer = await this.#try(url, trying);
        if (answer !== null) return answer;
      } else if (round) {
        void this.nodes.learn();
        throw noLeader(round.reasons, trying.maybeDone);
      } else if (!(await this.#waited(trying))) throw unanswered(trying);
    }
  }

  /** The answer, or null when another node is to be asked. Throws when none is. */
  async #try(url: string, trying: Trying): Promise<ClusterAnswer | null> {
    const { call, round } = trying;
    trying.asked.add(url);
    let answer: ClusterAnswer;
    try {
      answer = await this.#ask(url, trying);
    } catch (error) {
      this.#checkOpen();
      if (!(error instanceof CallError) || round?.signal.aborted) throw error;
      if (round && error.code === "ABORTED") return this.#moved(trying, error);
      const verdict = judgeFailure(error, this.nodes.answered, round !== null);
      this.nodes.failed(url);
      if (verdict.do === "take" || !this.#retry) throw error;
      this.#note(url, trying, verdict, error);
      return null;
    }
    if (call.leader) this.#heard(answer.json);
    const verdict = judgeAnswer(answer);
    if (verdict.do === "take" || !this.#retry) {
      if (call.leader) this.#follow(url);
      else this.nodes.worked(url, false);
      // Of a repeated request: that there is nothing to do may be the work of the first one.
      if (answer.status >= 400 && trying.maybeDone && !round) throw refusalOf(answer, true);
      return answer;
    }
    this.nodes.refused(url, verdict.standby, verdict.hints);
    this.#note(url, trying, verdict, refusalOf(answer, verdict.maybeDone && call.method !== "GET"));
    return null;
  }

  async #ask(url: string, trying: Trying): Promise<ClusterAnswer> {
    const { call, round, asked, maybeDone } = trying;
    const { method, path, headers } = call;
    const body = round ? round.body(maybeDone) : call.body;
    const request = { method, path, headers, body };
    const leftMs = trying.until - this.#clock.monotonic();
    const alone = call.repeat === "never" || this.nodes.next({ asked }) === null;
    const tryMs = alone ? leftMs : Math.min(leftMs, TRY_MS * 2 ** trying.tries++);
    const timeoutMs = round ? round.timeoutMs : Math.max(tryMs, 1);
    const leave = new AbortController();
    const either = round?.moves ? AbortSignal.any([round.signal, leave.signal]) : round?.signal;
    if (round?.moves) this.#waiting.set(leave, url);
    try {
      const answer = await this.nodes.connection(url).call(request, timeoutMs, either);
      return { ...answer, url, json: jsonOf(answer) };
    } finally {
      this.#waiting.delete(leave);
    }
  }

  /** Left for another leader: that one is asked next, and the one that was left has not failed. */
  #moved(trying: Trying, error: CallError): null {
    const { leader } = this.nodes.list;
    trying.maybeDone ||= error.maybeDone;
    trying.verdict = { ...judgeFailure(error, true, true), hints: leader === null ? [] : [leader] };
    return null;
  }

  /** Throws when the request may have been carried out and must not be made again. */
  #note(url: string, trying: Trying, verdict: Verdict, error: CallError): void {
    const { call } = trying;
    trying.verdict = verdict;
    trying.error = error;
    trying.round?.reasons.set(url, error);
    if (!verdict.maybeDone || call.method === "GET") return;
    if (call.repeat === "never") throw error.status === null ? outcomeUnknown(call, error) : error;
    trying.maybeDone = true;
  }

  async #nextFor(trying: Trying): Promise<string | null> {
    const { call, asked, verdict } = trying;
    if (verdict?.do === "pause") return null;
    while (this.#clock.monotonic() < trying.until) {
      const url = this.nodes.next({ asked, hints: verdict?.hints ?? [], leader: call.leader });
      if (url === null || !trying.maybeDone || call.repeat !== "keyed") return url;
      const shares = await this.#sharesJobs(url, trying.until);
      if (shares === true) return url;
      if (shares === false) throw outcomeUnknown(call, trying.error!);
      asked.add(url); // it does not answer
    }
    return null;
  }

  /** Whether a key that was used at another node is known at this one. Null when it does not answer. */
  async #sharesJobs(url: string, until: number): Promise<boolean | null> {
    const leftMs = Math.min(until - this.#clock.monotonic(), TRY_MS);
    try {
      const call = { method: "GET", path: "/status" } as const;
      const answer = await this.nodes.connection(url).call(call, Math.max(leftMs, 1));
      if (answer.status !== 200) return null;
      const { store, cluster } = jsonOf(answer) as StatusBody;
      return store.shared || cluster.coordination === "standalone";
    } catch {
      this.#checkOpen();
      this.nodes.failed(url);
      return null;
    }
  }

  /** Waits before another round, unless that leads nowhere or takes longer than the caller waits. */
  async #waited(trying: Trying): Promise<boolean> {
    const { verdict, until, waits } = trying;
    if (!verdict?.passes) return false;
    const askedForMs = verdict.afterMs * (1 + SPREAD * this.#random.chance());
    const delayMs = Math.max(waits.next(), askedForMs);
    if (this.#clock.monotonic() + delayMs >= until) return false;
    void this.nodes.learn();
    await this.#clock.sleep(delayMs, this.#closing.signal);
    trying.asked.clear();
    trying.verdict = null;
    return true;
  }

  async *#watched(
    url: string,
    chunks: AsyncIterable<string>,
    signal: AbortSignal,
  ): AsyncGenerator<string, void> {
    try {
      yield* chunks;
    } catch (error) {
      this.#checkOpen();
      if (!signal.aborted) this.nodes.failed(url);
      throw error;
    }
    // It ended while the caller read: the node is about to stop.
    if (!signal.aborted) this.nodes.failed(url);
  }

  #follow(url: string): void {
    const moved = this.nodes.list.leader !== url;
    this.nodes.worked(url, true);
    if (moved) for (const [leave, at] of this.#waiting) if (at !== url) leave.abort();
  }

  #heard(json: unknown): void {
    const epoch = (json as { leader_epoch?: unknown } | null)?.leader_epoch;
    if (typeof epoch === "number" && epoch > this.#epoch) this.#epoch = epoch;
  }

  #checkOpen(): void {
    if (this.#closing.signal.aborted) throw new CallError("CLOSED", "this client was closed");
  }
}

type StatusBody = AnswerOf<"GET /status">;

async function textOf(chunks: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const chunk of chunks) text += chunk;
  return text;
}

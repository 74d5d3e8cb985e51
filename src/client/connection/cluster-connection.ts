/**
 * A connection to any node of a cluster. It stays with a node that works and switches to the next when that is safe. It
 * waits for temporary conditions (no leader, a full queue, a forming cluster) for as long as the caller does. Otherwise
 * it reports what is known about the request.
 *
 *   next node ──ask──> answer ──take──> the caller's
 *       ^                 | next: it had no effect, or may be repeated
 *       |                 v
 *       '──── wait, when all were asked
 */

import { retryDelayMs, type RetryPolicy } from "../../core/jobs/retry.ts";
import type { Random } from "../../platform/random.ts";
import type { Answer, Call, OpenAnswer } from "./connection.ts";
import { BatonClientError } from "../client-error.ts";
import { KnownNodes, type KnownNodesOptions } from "./known-nodes.ts";
import { refusalOf } from "./refusal.ts";
import { judgeAnswer, judgeFailure, type Verdict } from "./verdict.ts";

export interface ClusterConnectionOptions extends KnownNodesOptions {
  /** False: each call is tried once, and what became of it is told at once. */
  readonly retry: boolean;
  readonly random: Random;
}

/**
 * Whether a request may be made again when its answer was lost. `keyed`: its jobs have idempotency keys, so that a store knows them
 * again; where every node has a store of its own, another node would not.
 */
export type Repeat = "always" | "keyed" | "never";

export interface ClusterCall extends Call {
  /** For all tries together. */
  readonly timeoutMs: number;
  readonly repeat: Repeat;
  /** Only the leader does it. */
  readonly leader: boolean;
}

/** One try, as long as there are other nodes to ask; the next one has twice as long. Shorter, and a slow store is asked twice. */
const TRY_MS = 5_000;
const WAIT: RetryPolicy = { firstDelayMs: 100, factor: 2, delayMsMax: 2_000, jitter: 0.5 };
/** Callers who were told the same second do not all come back in it. */
const SPREAD = 0.5;

/** What is known of a call while it is tried. */
interface Trying {
  readonly call: ClusterCall;
  readonly until: number;
  /** In this round. */
  readonly asked: Set<string>;
  tries: number;
  waits: number;
  maybeDone: boolean;
  /** The last one that was not an answer for the caller, and why. */
  verdict: Verdict | null;
  error: BatonClientError | null;
}

export class ClusterConnection {
  readonly #o: ClusterConnectionOptions;
  readonly #nodes: KnownNodes;
  readonly #closing = new AbortController();

  constructor(options: ClusterConnectionOptions) {
    this.#o = options;
    this.#nodes = new KnownNodes(options);
  }

  get nodes(): Pick<KnownNodes, "all" | "current" | "learn"> {
    return this.#nodes;
  }

  /** The answer of some node, refusals too. Rejects with what kept all of them from answering. */
  async call(call: ClusterCall): Promise<Answer> {
    const until = this.#o.clock.monotonic() + call.timeoutMs;
    const first = { asked: new Set<string>(), tries: 0, waits: 0, maybeDone: false };
    const trying: Trying = { call, until, ...first, verdict: null, error: null };
    for (;;) {
      this.#checkOpen();
      const url = await this.#nextFor(trying);
      if (url !== null) {
        const answer = await this.#try(url, trying);
        if (answer !== null) return answer;
      } else if (!(await this.#waited(trying))) throw lastWord(trying);
    }
  }

  /** A stream that only reads, of the first node that gives one. When it breaks, that node is asked last. */
  async open(call: Call, timeoutMs: number, signal: AbortSignal): Promise<OpenAnswer> {
    const asked = new Set<string>();
    const either = AbortSignal.any([signal, this.#closing.signal]);
    for (let hints: readonly string[] = []; ;) {
      this.#checkOpen();
      const url = this.#nodes.next({ asked, hints })!;
      asked.add(url);
      const isLast = !this.#o.retry || this.#nodes.next({ asked }) === null;
      try {
        const tryMs = isLast ? timeoutMs : Math.min(timeoutMs, TRY_MS);
        const { status, chunks } = await this.#nodes.connection(url).open(call, tryMs, either);
        if (status < 400) {
          this.#nodes.worked(url, false);
          return { status, chunks: this.#watched(url, chunks, either) };
        }
        const answer = { status, body: await textOf(chunks) };
        const verdict = judgeAnswer(answer);
        ({ hints } = verdict);
        if (verdict.do !== "take") this.#nodes.refused(url, verdict.standby, hints);
        const over = !this.#o.retry || this.#nodes.next({ asked, hints }) === null;
        if (verdict.do === "take" || over) throw refusalOf(answer);
      } catch (error) {
        this.#checkOpen();
        if (!(error instanceof BatonClientError) || error.status !== null || signal.aborted) throw error;
        this.#nodes.failed(url);
        if (isLast) throw error;
      }
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#nodes.close();
  }

  /** The answer, or null when somebody else is to be asked. Throws when nobody else is. */
  async #try(url: string, trying: Trying): Promise<Answer | null> {
    const { call, asked } = trying;
    const { method, path, headers, body } = call;
    asked.add(url);
    const leftMs = trying.until - this.#o.clock.monotonic();
    const alone = call.repeat === "never" || this.#nodes.next({ asked }) === null;
    const tryMs = alone ? leftMs : Math.min(leftMs, TRY_MS * 2 ** trying.tries++);
    const request = { method, path, ...(headers && { headers }), ...(body !== undefined && { body }) };
    let answer: Answer;
    try {
      answer = await this.#nodes.connection(url).call(request, Math.max(tryMs, 1));
    } catch (error) {
      this.#checkOpen();
      if (!(error instanceof BatonClientError)) throw error;
      const verdict = judgeFailure(error, this.#nodes.answered);
      this.#nodes.failed(url);
      if (verdict.do === "take" || !this.#o.retry) throw error;
      this.#note(trying, verdict, error);
      return null;
    }
    const verdict = judgeAnswer(answer);
    if (verdict.do === "take" || !this.#o.retry) {
      this.#nodes.worked(url, call.leader);
      // Of a repeated request: that there is nothing to do may be the work of the first one.
      if (answer.status >= 400 && trying.maybeDone) throw refusalOf(answer, true);
      return answer;
    }
    this.#nodes.refused(url, verdict.standby, verdict.hints);
    this.#note(trying, verdict, refusalOf(answer, verdict.maybeDone && method !== "GET"));
    return null;
  }

  /** Throws when the request may have been carried out and must not be made again. */
  #note(trying: Trying, verdict: Verdict, error: BatonClientError): void {
    const { call } = trying;
    trying.verdict = verdict;
    trying.error = error;
    if (!verdict.maybeDone || call.method === "GET") return;
    if (call.repeat === "never") throw error.status === null ? outcomeUnknown(call, error) : error;
    trying.maybeDone = true;
  }

  /** Null when all were asked in this round, or it is too late. */
  async #nextFor(trying: Trying): Promise<string | null> {
    const { call, asked, verdict } = trying;
    if (verdict?.do === "pause") return null;
    while (this.#o.clock.monotonic() < trying.until) {
      const url = this.#nodes.next({ asked, hints: verdict?.hints ?? [], leader: call.leader });
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
    const leftMs = Math.min(until - this.#o.clock.monotonic(), TRY_MS);
    try {
      const call = { method: "GET", path: "/status" } as const;
      const { status, body } = await this.#nodes.connection(url).call(call, Math.max(leftMs, 1));
      if (status !== 200) return null;
      const { store, cluster } = JSON.parse(body) as StatusBody;
      return store.shared || cluster.coordination === "standalone";
    } catch {
      this.#checkOpen();
      this.#nodes.failed(url);
      return null;
    }
  }

  /** Waits before another round, unless that leads nowhere or takes longer than the caller waits. */
  async #waited(trying: Trying): Promise<boolean> {
    const { verdict, until } = trying;
    const { clock, random } = this.#o;
    if (!verdict?.passes) return false;
    const backOffMs = retryDelayMs(++trying.waits, random.chance(), WAIT);
    const askedForMs = verdict.afterMs * (1 + SPREAD * random.chance());
    const delayMs = Math.max(backOffMs, askedForMs);
    if (clock.monotonic() + delayMs >= until) return false;
    void this.#nodes.learn();
    await clock.sleep(delayMs, this.#closing.signal);
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
      if (!signal.aborted) this.#nodes.failed(url);
      throw error;
    }
    // It ended while somebody read: the node is about to stop.
    if (!signal.aborted) this.#nodes.failed(url);
  }

  #checkOpen(): void {
    if (this.#closing.signal.aborted) throw new BatonClientError("CLOSED", "this client was closed");
  }
}

interface StatusBody {
  readonly store: { readonly shared: boolean };
  readonly cluster: { readonly coordination: string };
}

function lastWord({ call, error, maybeDone }: Trying): BatonClientError {
  if (error === null) {
    return new BatonClientError("TIMEOUT", `no node answered within ${call.timeoutMs} ms`, { maybeDone });
  }
  if (error.maybeDone === maybeDone) return error;
  const { status, body, cause, systemCode } = error;
  const known = { ...(status !== null && { status }), ...(systemCode !== null && { systemCode }) };
  const details = { ...known, body, cause, maybeDone };
  return new BatonClientError(error.code, error.message, details);
}

function outcomeUnknown({ method, path }: Call, cause: BatonClientError): BatonClientError {
  return new BatonClientError(
    "OUTCOME_UNKNOWN",
    `${method} ${path} may have been carried out, and is not safe to repeat: ${cause.message}`,
    { cause, maybeDone: true },
  );
}

async function textOf(chunks: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const chunk of chunks) text += chunk;
  return text;
}

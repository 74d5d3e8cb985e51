/**
 * How the client reaches a node: one call and its answer, or a body that is read as it arrives. The client depends only
 * on the interface, so that another transport can replace this one.
 */

import type * as Undici from "undici";
import type { Dispatcher, Pool } from "undici";
import type { Method } from "../../api/operation.ts";
import type { Clock } from "../../platform/clock.ts";
import { loadPackage } from "../../platform/load-package.ts";
import { DEFAULT_URL, isAddress } from "./node-addresses.ts";
import { BatonClientError } from "../client-error.ts";
import { HttpExchange } from "./http-exchange.ts";

export interface Call {
  readonly method: Method;
  /** With its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Answer {
  readonly status: number;
  readonly body: string;
  /** What it asks us to wait before the next try; null or left out if it says nothing. */
  readonly retryAfterMs?: number | null;
}

export interface OpenAnswer {
  readonly status: number;
  readonly chunks: AsyncIterable<string>;
}

export interface Connection {
  /**
   * Rejects with UNREACHABLE or TIMEOUT, or ABORTED by the signal; every answer of the node is a reply, whatever its
   * status.
   */
  call(call: Call, timeoutMs: number, signal?: AbortSignal): Promise<Answer>;
  /** The time-out ends with the headers; after that only silence (see SILENCE_MS) counts as a failure. */
  open(call: Call, timeoutMs: number, signal: AbortSignal): Promise<OpenAnswer>;
  close(): Promise<void>;
}

export interface UndiciConnectionOptions {
  readonly clock: Clock;
  /** Sent as `Authorization: Bearer`. */
  readonly token?: string | undefined;
}

/** Three heartbeats of the server: a connection that is silent for longer is dead. */
const SILENCE_MS = 45_000;

/** A machine that is switched off answers nothing at all. Longer, and it eats the deadline of a call that another node could answer. */
const CONNECT_MS = 3_000;
const CALLED_OFF = "it was called off";
const TOO_LATE = "it took too long";
/** It has to fit into memory. */
const ANSWER_BYTES_MAX = 256 * 1_048_576;

export class UndiciConnection implements Connection {
  readonly #pool: Pool;
  readonly #origin: string;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #token: string | undefined;

  constructor(url: string, { clock, token }: UndiciConnectionOptions) {
    if (!isAddress(url)) {
      throw new BatonClientError(
        "BAD_URL",
        `"${url}" is not the address of a node; write it as ${DEFAULT_URL}`,
      );
    }
    const parsed = new URL(url);
    this.#origin = parsed.origin;
    this.#prefix = parsed.pathname.replace(/\/+$/, "");
    this.#clock = clock;
    this.#token = token;
    // Loaded here, because a node that is embedded exports the client and may never use it.
    const undici = loadPackage<typeof Undici>("undici");
    this.#pool = new undici.Pool(parsed.origin, {
      connections: 32,
      connect: { timeout: CONNECT_MS },
      // Our own deadline covers a call; undici's would start anew with every part of it.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  async call(call: Call, timeoutMs: number, signal?: AbortSignal): Promise<Answer> {
    if (signal?.aborted) throw this.#calledOff(false);
    const exchange = new HttpExchange(ANSWER_BYTES_MAX);
    const leave = (): void => exchange.giveUp(CALLED_OFF);
    const callOff = this.#clock.after(timeoutMs, () => exchange.giveUp(TOO_LATE));
    signal?.addEventListener("abort", leave, { once: true });
    this.#pool.dispatch(this.#request(call), exchange);
    const outcome = await exchange.outcome;
    callOff();
    signal?.removeEventListener("abort", leave);
    if (!outcome.answered) throw this.#lost(outcome.why, outcome.sent, timeoutMs);
    const { status, headers, body } = outcome;
    return { status, body, retryAfterMs: retryAfterMs(headers["retry-after"]) };
  }

  async open(call: Call, timeoutMs: number, signal: AbortSignal): Promise<OpenAnswer> {
    const late = new AbortController();
    const callOff = this.#clock.after(timeoutMs, () => late.abort());
    try {
      const answer = await this.#pool.request({
        ...this.#request(call),
        bodyTimeout: SILENCE_MS,
        signal: AbortSignal.any([signal, late.signal]),
      });
      return { status: answer.statusCode, chunks: this.#chunks(answer.body) };
    } catch (error) {
      throw this.#failure(error, late.signal.aborted ? timeoutMs : null);
    } finally {
      callOff();
    }
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  #request(call: Call): Dispatcher.RequestOptions {
    const { method, headers, body } = call;
    return {
      method,
      path: this.#prefix + call.path,
      headers: {
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
        ...headers,
      },
      body: body ?? null,
    };
  }

  async *#chunks(body: Dispatcher.ResponseData["body"]): AsyncGenerator<string> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of body) yield decoder.decode(chunk as Uint8Array, { stream: true });
    } catch (error) {
      throw this.#failure(error, null);
    }
  }

  /** Of a call: whether its first byte may have left decides whether it may have been carried out. */
  #lost(why: string, sent: boolean, timeoutMs: number): BatonClientError {
    if (why === CALLED_OFF) return this.#calledOff(sent);
    if (why === TOO_LATE) return this.#late(timeoutMs, sent);
    return sent ? this.#broke(why) : this.#noConnection(why);
  }

  /** Of a stream, which only reads: whether anything was sent does not matter. */
  #failure(error: unknown, timeoutMs: number | null): BatonClientError {
    if (timeoutMs !== null) return this.#late(timeoutMs, false, error);
    const code = (error as { code?: string }).code ?? UNKNOWN;
    return NO_CONNECTION.has(code) ? this.#noConnection(code, error) : this.#broke(code, error);
  }

  #calledOff(maybeDone: boolean): BatonClientError {
    return new BatonClientError("ABORTED", `the call to ${this.#origin} was called off`, { maybeDone });
  }

  #late(timeoutMs: number, maybeDone: boolean, cause?: unknown): BatonClientError {
    const message = `${this.#origin} did not answer within ${Math.round(timeoutMs)} ms`;
    return new BatonClientError("TIMEOUT", message, { cause, maybeDone });
  }

  #noConnection(code: string, cause?: unknown): BatonClientError {
    const message = `no connection to ${this.#origin} (${code}); does a node run there?`;
    return new BatonClientError("UNREACHABLE", message, { cause, ...systemCode(code) });
  }

  #broke(code: string, cause?: unknown): BatonClientError {
    const message = `the connection to ${this.#origin} broke (${code})`;
    return new BatonClientError("UNREACHABLE", message, { cause, maybeDone: true, ...systemCode(code) });
  }
}

const UNKNOWN = "unknown";

function systemCode(code: string): { systemCode?: string } {
  return code === UNKNOWN ? {} : { systemCode: code };
}

const NO_CONNECTION: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Seconds, as our nodes say it; a date is not waited for. */
function retryAfterMs(header: string | string[] | undefined): number | null {
  return typeof header === "string" && /^\d{1,6}$/.test(header) ? Number(header) * 1_000 : null;
}

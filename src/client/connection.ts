/**
 * How the client reaches a node: one call and its answer, or a body that is read as it comes. The client knows only
 * the interface, so that another transport can take the place of this one.
 */

import { Pool } from "undici";
import type { Dispatcher } from "undici";
import type { Method } from "../api/operation.ts";
import type { Clock } from "../platform/clock.ts";
import { BatonClientError } from "./error.ts";

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

/** Three heartbeats of the server: a connection that is silent for longer is dead. */
const SILENCE_MS = 45_000;

/** Failures before the first byte was sent. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

export class UndiciConnection implements Connection {
  readonly #pool: Pool;
  readonly #origin: string;
  readonly #prefix: string;
  readonly #clock: Clock;

  constructor(url: string, clock: Clock) {
    const parsed = URL.canParse(url) ? new URL(url) : null;
    if (!parsed || (parsed.protocol !== "http:" && parsed.protocol !== "https:")) {
      throw new BatonClientError(
        "BAD_URL",
        `"${url}" is not the address of a node; write it as http://127.0.0.1:8420`,
      );
    }
    this.#origin = parsed.origin;
    this.#prefix = parsed.pathname.replace(/\/+$/, "");
    this.#clock = clock;
    // Our own deadline covers a call; undici's would start anew with every part of it.
    this.#pool = new Pool(parsed.origin, { connections: 32, headersTimeout: 0, bodyTimeout: 0 });
  }

  async call(call: Call, timeoutMs: number, signal?: AbortSignal): Promise<Answer> {
    const late = new AbortController();
    const callOff = this.#clock.after(timeoutMs, () => late.abort());
    try {
      const answer = await this.#pool.request({
        ...this.#request(call),
        signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
      });
      return { status: answer.statusCode, body: await answer.body.text() };
    } catch (error) {
      if (signal?.aborted) {
        const details = { cause: error, maybeDone: true };
        throw new BatonClientError("ABORTED", `the call to ${this.#origin} was called off`, details);
      }
      throw this.#failure(error, late.signal.aborted ? timeoutMs : null);
    } finally {
      callOff();
    }
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
      headers: body === undefined ? headers : { "content-type": "application/json", ...headers },
      body,
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

  #failure(error: unknown, timeoutMs: number | null): BatonClientError {
    if (timeoutMs !== null) {
      return new BatonClientError("TIMEOUT", `${this.#origin} did not answer within ${timeoutMs} ms`, {
        cause: error,
        maybeDone: true,
      });
    }
    const code = (error as { code?: string }).code ?? "unknown";
    if (NEVER_SENT.has(code)) {
      return new BatonClientError(
        "UNREACHABLE",
        `no connection to ${this.#origin} (${code}); does a node run there?`,
        {
          cause: error,
        },
      );
    }
    return new BatonClientError("UNREACHABLE", `the connection to ${this.#origin} broke (${code})`, {
      cause: error,
      maybeDone: true,
    });
  }
}

/** How the client reaches a node. HTTP is that of Node itself: a client that is loaded for one call should not load a library for it. */

import type * as Http from "node:http";
import type { Socket } from "node:net";
import type { Method } from "../../api/operation.ts";
import type { Clock } from "../../platform/clock.ts";
import { CallError } from "../client-error.ts";

export interface Call {
  readonly method: Method;
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
  /** Rejects with UNREACHABLE or TIMEOUT, or ABORTED by the signal; every answer is a reply, whatever its status. */
  call(call: Call, timeoutMs: number, signal?: AbortSignal): Promise<Answer>;
  /** The time-out ends with the headers; after that only silence (see SILENCE_MS) counts as a failure. */
  open(call: Call, timeoutMs: number, signal: AbortSignal): Promise<OpenAnswer>;
  close(): Promise<void>;
}

/** Three heartbeats of the server: a connection that is silent for longer is dead. */
const SILENCE_MS = 45_000;
/** A machine that is switched off answers nothing at all. Longer, and it eats the deadline of a call that another node could answer. */
const CONNECT_MS = 3_000;
/** It has to fit into memory. */
const ANSWER_BYTES_MAX = 256 * 1_048_576;
const CONNECTIONS_MAX = 32;

type GivenUp = "late" | "called_off" | "no_connection" | "silent" | "too_large";

export class HttpConnection implements Connection {
  readonly #clock: Clock;
  readonly #token: string | undefined;
  readonly #url: URL;
  readonly #prefix: string;
  #http: Promise<{ readonly request: typeof Http.request; readonly agent: Http.Agent }> | null = null;
  readonly #underWay = new Set<Exchange>();
  #closed = false;

  constructor(url: string, clock: Clock, token?: string) {
    this.#url = new URL(url);
    this.#prefix = this.#url.pathname.replace(/\/+$/, "");
    this.#clock = clock;
    this.#token = token;
  }

  async call(call: Call, timeoutMs: number, signal?: AbortSignal): Promise<Answer> {
    const exchange = await this.#begin(call, timeoutMs, signal);
    try {
      const response = await exchange.response;
      const chunks: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of response as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > ANSWER_BYTES_MAX) exchange.giveUp("too_large");
        chunks.push(chunk);
      }
      const body = Buffer.concat(chunks).toString("utf8");
      return {
        status: response.statusCode!,
        body,
        retryAfterMs: retryAfterMs(response.headers["retry-after"]),
      };
    } catch (error) {
      throw this.#failure(error, exchange, timeoutMs);
    } finally {
      exchange.end();
    }
  }

  async open(call: Call, timeoutMs: number, signal: AbortSignal): Promise<OpenAnswer> {
    const exchange = await this.#begin(call, timeoutMs, signal);
    try {
      const response = await exchange.response;
      return { status: response.statusCode!, chunks: this.#chunks(response, exchange) };
    } catch (error) {
      exchange.end();
      throw this.#failure(error, exchange, timeoutMs);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const exchange of this.#underWay) exchange.giveUp("called_off");
    (await this.#http)?.agent.destroy();
  }

  async *#chunks(response: Http.IncomingMessage, exchange: Exchange): AsyncGenerator<string> {
    const decoder = new TextDecoder();
    try {
      exchange.expect(SILENCE_MS, "silent");
      for await (const chunk of response as AsyncIterable<Uint8Array>) {
        exchange.expect(SILENCE_MS, "silent");
        yield decoder.decode(chunk, { stream: true });
      }
    } catch (error) {
      throw this.#failure(error, exchange, SILENCE_MS);
    } finally {
      exchange.end();
      response.destroy();
    }
  }

  async #begin(call: Call, timeoutMs: number, signal?: AbortSignal): Promise<Exchange> {
    const { request, agent } = await (this.#http ??= loadHttp(this.#url));
    if (this.#closed || signal?.aborted) throw this.#calledOff(false);
    const { method, headers, body } = call;
    const sending = request(this.#url, {
      method,
      path: this.#prefix + call.path,
      agent,
      headers: {
        ...(body !== undefined && {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body),
        }),
        ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
        ...headers,
      },
    });
    const exchange = new Exchange(sending, this.#clock, signal, () => this.#underWay.delete(exchange));
    this.#underWay.add(exchange);
    exchange.expect(timeoutMs, "late");
    sending.end(body);
    return exchange;
  }

  /** Whether its first byte may have left decides whether a request may have been carried out. */
  #failure(error: unknown, { sent, givenUp }: Exchange, timeoutMs: number): CallError {
    const origin = this.#url.origin;
    if (givenUp === "called_off") return this.#calledOff(sent);
    if (givenUp === "late")
      return new CallError("TIMEOUT", `${origin} did not answer within ${Math.round(timeoutMs)} ms`, {
        cause: error,
        maybeDone: sent,
      });
    const code = givenUp === "no_connection" ? "ETIMEDOUT" : (givenUp ?? (error as { code?: string }).code);
    const details = { cause: error, maybeDone: sent, systemCode: code };
    const message = sent
      ? `the connection to ${origin} broke (${code ?? "unknown"})`
      : `no connection to ${origin} (${code ?? "unknown"}); does a node run there?`;
    return new CallError("UNREACHABLE", message, details);
  }

  #calledOff(maybeDone: boolean): CallError {
    return new CallError("ABORTED", `the call to ${this.#url.origin} was called off`, { maybeDone });
  }
}

class Exchange {
  readonly response: Promise<Http.IncomingMessage>;
  givenUp: GivenUp | null = null;
  sent = false;
  readonly #request: Http.ClientRequest;
  readonly #clock: Clock;
  readonly #signal: AbortSignal | undefined;
  readonly #onEnd: () => void;
  readonly #leave = (): void => this.giveUp("called_off");
  #cancelLimit: () => void = () => {};

  constructor(request: Http.ClientRequest, clock: Clock, signal: AbortSignal | undefined, onEnd: () => void) {
    this.#onEnd = onEnd;
    this.#request = request;
    this.#clock = clock;
    this.#signal = signal;
    this.response = new Promise((resolve, reject) => {
      request.on("response", resolve);
      request.on("error", reject);
    });
    request.on("socket", (socket) => this.#connect(socket));
    signal?.addEventListener("abort", this.#leave, { once: true });
  }

  giveUp(why: GivenUp): void {
    this.givenUp ??= why;
    this.#request.destroy(new Error(why));
  }

  #connect(socket: Socket): void {
    this.sent = !socket.connecting;
    if (this.sent) return;
    const cancel = this.#clock.after(CONNECT_MS, () => this.giveUp("no_connection"));
    socket.once("close", cancel);
    socket.once("encrypted" in socket ? "secureConnect" : "connect", () => {
      cancel();
      this.sent = true;
    });
  }

  /** Something must come within so long; replaces the limit before. */
  expect(ms: number, otherwise: GivenUp): void {
    this.#cancelLimit();
    this.#cancelLimit = this.#clock.after(ms, () => this.giveUp(otherwise));
  }

  end(): void {
    this.#onEnd();
    this.#cancelLimit();
    this.#signal?.removeEventListener("abort", this.#leave);
  }
}

/** Loaded with the first call, because a node that is embedded exports the client and may never use it. */
async function loadHttp({ protocol }: URL) {
  const { request, Agent } = protocol === "https:" ? await import("node:https") : await import("node:http");
  return { request, agent: new Agent({ keepAlive: true, maxSockets: CONNECTIONS_MAX }) };
}

/** Seconds, as our nodes say it; a date is not waited for. */
function retryAfterMs(header: string | string[] | undefined): number | null {
  return typeof header === "string" && /^\d{1,6}$/.test(header) ? Number(header) * 1_000 : null;
}

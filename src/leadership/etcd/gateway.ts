/**
 * Etcd through the JSON gateway of its members: calls with a deadline, and streams.
 *
 * One member is used until it fails, then the next. A call that was not sent is tried at the next member within the
 * same deadline. A call that may have had an effect is not repeated: it is rejected as `unknown`, and only later calls
 * use the next member.
 */

import type * as Undici from "undici";
import { BatonError } from "../../core/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import { parseEtcdUrl, type EtcdAddress } from "../../platform/drivers/server-url.ts";
import { loadPackage } from "../../platform/load-package.ts";
import { Lifecycle } from "../../platform/service.ts";
import { EtcdRefusal, GRPC, refusalIn, translated, unavailable } from "./gateway-errors.ts";

const { Pool } = loadPackage<typeof Undici>("undici");

interface GatewayOptions {
  /** Of one member, or of several with commas between them. */
  readonly url: string;
  readonly clock: Clock;
  readonly commandMs: number;
}

/** Longer, and a member that is cut off uses up the deadlines of the calls that should go on to the next one. */
const CONNECT_MS_MAX = 500;
/** The gateway has had this path and these answers since then. */
const VERSION_MIN = [3, 4] as const;

export class Gateway extends Lifecycle {
  readonly #o: GatewayOptions;
  readonly #address: EtcdAddress;
  #pools: readonly Undici.Pool[] = [];
  #current = 0;
  #token: Promise<string | null> | null = null;
  readonly #failures = new Map<string, string>();

  constructor(options: GatewayOptions) {
    super();
    this.#o = options;
    this.#address = parseEtcdUrl(options.url);
  }

  /** By member: why it did not answer when it was asked last. */
  get failures(): ReadonlyMap<string, string> {
    return this.#failures;
  }

  get endpoints(): readonly string[] {
    return this.#address.endpoints;
  }

  /** Rejects with an `EtcdRefusal`, or with an error for people. */
  async call<Reply>(path: string, body: unknown, deadlineMs = this.#o.commandMs): Promise<Reply> {
    try {
      return (await this.#authorised((token) => this.#send(path, body, token, deadlineMs))) as Reply;
    } catch (error) {
      throw error instanceof EtcdRefusal ? translated(error) : error;
    }
  }

  /** Messages as they come, until the stream breaks (it rejects) or the signal ends it. */
  async stream(
    path: string,
    body: string,
    signal: AbortSignal,
    onMessage: (message: unknown) => void,
  ): Promise<void> {
    const at = this.#current;
    const token = await this.#authorisation();
    const pool = this.#pools[at];
    if (!pool) throw unavailable("not started", "not_done");
    const late = new AbortController();
    // Headers come with the first message.
    const callOff = this.#o.clock.after(this.#o.commandMs, () => late.abort());
    try {
      const reply = await pool.request({
        path,
        method: "POST",
        headers: headers(token),
        body,
        headersTimeout: 0,
        bodyTimeout: 0,
        signal: AbortSignal.any([signal, late.signal]),
      });
      callOff();
      for await (const message of lines(reply.body)) {
        const refusal = refusalIn(message);
        if (refusal?.tokenIsOld) this.#token = null;
        if (refusal) throw refusal;
        onMessage(message);
      }
      throw unavailable("the stream has ended", "not_done");
    } catch (error) {
      if (!signal.aborted) this.#leave(at, "its stream broke");
      throw error;
    } finally {
      callOff();
    }
  }

  protected async onStart(): Promise<void> {
    this.#pools = this.endpoints.map(
      (origin) =>
        new Pool(origin, {
          // Calls, and a stream. One call at a time on a connection: an abort ends all that are on it.
          connections: 32,
          pipelining: 1,
          allowH2: false,
          headersTimeout: 0,
          bodyTimeout: 0,
        }),
    );
    this.#current = 0;
    this.#token = null;
    try {
      await this.#check();
    } catch (error) {
      await this.onStop();
      throw error instanceof EtcdRefusal ? translated(error) : error;
    }
  }

  protected async onStop(): Promise<void> {
    const pools = this.#pools;
    this.#pools = [];
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  async #check(): Promise<void> {
    const answer = await this.#version();
    const version = String((answer as { etcdserver?: unknown } | null)?.etcdserver ?? "");
    const [major = NaN, minor = NaN] = version.split(".").map(Number);
    if (major > VERSION_MIN[0] || (major === VERSION_MIN[0] && minor >= VERSION_MIN[1])) return;
    const what = version === "" ? "is no etcd" : `has version ${version}, and 3.4 or later is needed`;
    throw new BatonError("BAD_CONFIG", `the server at ${this.endpoints[this.#current]} ${what}`, {
      field: "etcd",
    });
  }

  /** Of the first member that answers: one that hangs must not keep a node from starting. */
  async #version(): Promise<unknown> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#send("/version", null, null, this.#o.commandMs);
      } catch (error) {
        if (tries >= this.endpoints.length) throw error;
      }
    }
  }

  async #authorised<T>(call: (token: string | null) => Promise<T>): Promise<T> {
    const token = await this.#authorisation();
    try {
      return await call(token);
    } catch (error) {
      if (token === null || !(error instanceof EtcdRefusal) || !error.tokenIsOld) throw error;
      this.#token = null;
      return call(await this.#authorisation());
    }
  }

  #authorisation(): Promise<string | null> {
    const { user } = this.#address;
    if (user === null) return Promise.resolve(null);
    this.#token ??= this.#authenticate(user).catch((error: unknown) => {
      this.#token = null;
      throw error;
    });
    return this.#token;
  }

  async #authenticate(body: { readonly name: string; readonly password: string }): Promise<string | null> {
    try {
      const reply = await this.#send("/v3/auth/authenticate", body, null, this.#o.commandMs);
      return (reply as { token: string }).token;
    } catch (error) {
      // Without authentication every client may do everything.
      if (error instanceof EtcdRefusal && error.grpc === GRPC.failedPrecondition) return null;
      throw error;
    }
  }

  /** A request without a body is a GET. */
  async #send(path: string, body: unknown, token: string | null, deadlineMs: number): Promise<unknown> {
    const { clock } = this.#o;
    const request: Undici.Dispatcher.DispatchOptions = {
      path,
      method: body === null ? "GET" : "POST",
      headers: headers(token),
      body: body === null ? null : JSON.stringify(body),
    };
    const giveUpAt = clock.monotonic() + deadlineMs;
    const connectMs = Math.min(CONNECT_MS_MAX, deadlineMs / this.endpoints.length);
    for (let tries = 1; ; tries++) {
      const at = this.#current;
      const pool = this.#pools[at];
      const leftMs = giveUpAt - clock.monotonic();
      if (!pool || leftMs <= 0) throw unavailable(pool ? "no member answers" : "not started", "not_done");
      const end = await callOnce(pool, request, clock, leftMs, connectMs);
      if (end.ended === "reply") return this.#answer(at, end.status, end.body);
      this.#leave(at, end.reason);
      const where = this.endpoints[at];
      if (end.sent) throw unavailable(`${where}: ${end.reason}`, "unknown");
      if (tries >= this.endpoints.length) throw unavailable(`${where}: ${end.reason}`, "not_done");
    }
  }

  #answer(at: number, status: number, body: string): unknown {
    const answer = parsed(body);
    const refusal = refusalIn(answer);
    if (refusal?.elsewhere) this.#leave(at, refusal.message);
    else this.#failures.delete(this.endpoints[at]!);
    if (refusal) throw refusal;
    if (status === 200 && answer !== undefined) return answer;
    throw unavailable(`${this.endpoints[at]} answered with status ${status} and nothing of etcd`, "unknown");
  }

  #leave(at: number, reason: string): void {
    this.#failures.set(this.endpoints[at]!, reason);
    if (this.#current === at) this.#current = (at + 1) % this.endpoints.length;
  }
}

function headers(token: string | null): Record<string, string> {
  return { "content-type": "application/json", ...(token === null ? {} : { authorization: token }) };
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop()!;
    for (const part of parts) if (part.trim() !== "") yield parsed(part);
  }
  // A refusal of the whole stream has no end of line.
  if (rest.trim() !== "") yield parsed(rest);
}

type CallEnd =
  | { readonly ended: "reply"; readonly status: number; readonly body: string }
  /** `sent`: its first byte may have left, so that it may have been carried out. */
  | { readonly ended: "broken"; readonly sent: boolean; readonly reason: string };

/** `connectMs`, within the deadline: an address that does not answer is given up after this, and nothing was sent there. */
function callOnce(
  pool: Undici.Pool,
  request: Undici.Dispatcher.DispatchOptions,
  clock: Clock,
  deadlineMs: number,
  connectMs: number,
): Promise<CallEnd> {
  const { promise, resolve } = Promise.withResolvers<CallEnd>();
  /** There as soon as the first byte may have left. */
  let controller: Undici.Dispatcher.DispatchController | null = null;
  let over = false;
  let status = 0;
  const chunks: Buffer[] = [];
  const fail = (reason: string): void => {
    resolve({ ended: "broken", sent: controller !== null, reason });
    over = true;
  };
  const giveUp = (reason: string): void => {
    fail(reason);
    controller?.abort(new Error(reason));
  };
  const callOffs = [
    clock.after(deadlineMs, () => giveUp(`no answer within ${Math.ceil(deadlineMs)} ms`)),
    clock.after(connectMs, () => {
      if (!controller) giveUp(`no connection within ${Math.ceil(connectMs)} ms`);
    }),
  ];
  pool.dispatch(request, {
    onRequestStart(started) {
      // Given up while it waited for a connection: this keeps it from being written after all.
      if (over) started.abort(new Error("given up before it was sent"));
      else controller = started;
    },
    onResponseStart: (_, code) => void (status = code),
    onResponseData: (_, chunk) => void chunks.push(chunk),
    onResponseEnd: () => resolve({ ended: "reply", status, body: Buffer.concat(chunks).toString("utf8") }),
    onResponseError: (_, error) => fail((error as NodeJS.ErrnoException).code ?? error.message),
  });
  return promise.finally(() => callOffs.forEach((callOff) => callOff()));
}

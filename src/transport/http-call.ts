import type { Dispatcher } from "undici";
import type { Clock } from "../platform/clock.ts";
import { refused, unknown } from "./outcome.ts";
import type { CallOptions, Outcome } from "./transport.ts";

type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>>[2];

/** One call: turns what undici reports about a request into an outcome, exactly once. */
export class HttpCall implements Dispatcher.DispatchHandler {
  readonly outcome: Promise<Outcome>;
  readonly #resolve: (outcome: Outcome) => void;
  readonly #bytesMax: number;
  readonly #release: () => void;
  #over = false;
  /** There as soon as the first byte may have left. */
  #controller: Dispatcher.DispatchController | null = null;
  #status = 0;
  #headers: Record<string, string> = {};
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(clock: Clock, { deadlineMs, signal }: CallOptions, bytesMax: number) {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    this.outcome = promise;
    this.#resolve = resolve;
    this.#bytesMax = bytesMax;
    const abort = (): void => this.#giveUp("it was called off");
    const cancel = clock.after(deadlineMs, () => this.#giveUp(`no complete reply within ${deadlineMs} ms`));
    signal?.addEventListener("abort", abort, { once: true });
    this.#release = () => {
      cancel();
      signal?.removeEventListener("abort", abort);
    };
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Given up while it waited for a connection: this keeps it from being written after all.
    if (this.#over) controller.abort(new Error("given up before it was sent"));
    else this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (status < 200) return;
    this.#status = status;
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined) this.#headers[name] = Array.isArray(value) ? value.join(", ") : value;
    }
    if (!isDelimited(status, this.#headers)) this.#giveUp("the reply does not say where it ends");
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) this.#giveUp(`the reply is larger than ${this.#bytesMax} bytes`);
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#end({
      outcome: "reply",
      status: this.#status,
      headers: this.#headers,
      body: Buffer.concat(this.#chunks).toString("utf8"),
    });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(describe(error));
  }

  #giveUp(reason: string): void {
    const controller = this.#controller;
    this.#fail(reason);
    controller?.abort(new Error(reason));
  }

  #fail(reason: string): void {
    this.#end(this.#controller ? unknown(reason) : refused(reason));
  }

  #end(outcome: Outcome): void {
    if (this.#over) return;
    this.#over = true;
    this.#release();
    this.#resolve(outcome);
  }
}

/** Whether a reply's end can be told from a connection that broke. */
function isDelimited(status: number, headers: Readonly<Record<string, string>>): boolean {
  if (status === 204 || status === 304) return true;
  return headers["content-length"] !== undefined || /\bchunked\s*$/i.test(headers["transfer-encoding"] ?? "");
}

/** Where both families of addresses were tried, the error has a code and no text. */
function describe(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  if (!code) return error.message;
  return error.message ? `${code}: ${error.message}` : code;
}

/** One call over HTTP: turns what undici reports about a request into an outcome, exactly once. */

import type { Dispatcher } from "undici";
import type { Clock } from "../../platform/clock.ts";
import { describe, headersOf, isDelimited } from "./http-reply.ts";
import type { HttpHeaders } from "./http-reply.ts";
import { CALLED_OFF, refused, tooLate, unknown } from "../outcome.ts";
import type { CallOptions, Outcome } from "../transport.ts";

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

  constructor(clock: Clock, options: CallOptions, bytesMax: number) {
    const { deadlineMs, signal } = options;
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    this.outcome = promise;
    this.#resolve = resolve;
    this.#bytesMax = bytesMax;
    const abort = (): void => this.#giveUp(CALLED_OFF);
    const cancel = clock.after(deadlineMs, () => this.#giveUp(tooLate(options)));
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

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: HttpHeaders): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headersOf(headers);
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

/**
 * One streamed call over HTTP: an outcome when the response head arrives, then the body. A slow reader slows down the
 * socket.
 */

import type { Dispatcher } from "undici";
import type { Clock } from "../../platform/clock.ts";
import { describe, headersOf, isDelimited } from "./http-reply.ts";
import type { HttpHeaders } from "./http-reply.ts";
import { CALLED_OFF, refused, tooLate, unknown } from "../outcome.ts";
import { StreamBody } from "../stream-body.ts";
import type { StreamOptions, StreamOutcome } from "../transport.ts";

export class HttpStream implements Dispatcher.DispatchHandler {
  readonly outcome: Promise<StreamOutcome>;
  readonly #resolve: (outcome: StreamOutcome) => void;
  readonly #cancel: () => void;
  readonly #release: () => void;
  #over = false;
  /** There as soon as the first byte may have left. */
  #controller: Dispatcher.DispatchController | null = null;
  #body: StreamBody | null = null;

  constructor(clock: Clock, options: StreamOptions) {
    const { promise, resolve } = Promise.withResolvers<StreamOutcome>();
    this.outcome = promise;
    this.#resolve = resolve;
    const { headMs, signal } = options;
    const abort = (): void => {
      if (this.#body) this.#body.callOff(CALLED_OFF);
      else this.#giveUp(CALLED_OFF);
    };
    this.#cancel = clock.after(headMs, () => this.#giveUp(tooLate(options)));
    signal?.addEventListener("abort", abort, { once: true });
    this.#release = () => {
      this.#cancel();
      signal?.removeEventListener("abort", abort);
    };
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Given up while it waited for a connection: this keeps it from being written after all.
    if (this.#over) controller.abort(new Error("given up before it was sent"));
    else this.#controller = controller;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: HttpHeaders): void {
    if (status < 200 || this.#over) return;
    const named = headersOf(headers);
    if (!isDelimited(status, named)) return this.#giveUp("the reply does not say where it ends");
    this.#cancel();
    this.#body = new StreamBody({
      pause: () => controller.pause(),
      resume: () => controller.resume(),
      leave: (reason) => this.#giveUp(reason),
    });
    this.#resolve({ outcome: "reply", status, headers: named, body: this.#body });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#body?.push(chunk);
  }

  onResponseEnd(): void {
    this.#end();
    this.#body?.end();
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
    if (this.#over) return;
    this.#end();
    if (this.#body) this.#body.fail(`the reply broke off: ${reason}`);
    else this.#resolve(this.#controller ? unknown(reason) : refused(reason));
  }

  #end(): void {
    this.#over = true;
    this.#release();
  }
}

/**
 * One request of the client and its response, as undici reports them. The outcome resolves exactly once. If there is no
 * response, it says whether the request may have been sent.
 */

import type { Dispatcher } from "undici";

export type Exchanged =
  | {
      readonly answered: true;
      readonly status: number;
      readonly headers: Readonly<Record<string, string | string[] | undefined>>;
      readonly body: string;
    }
  /** `sent`: whether its first byte may have left, so that somebody may have acted on it. */
  | { readonly answered: false; readonly why: string; readonly sent: boolean };

export class HttpExchange implements Dispatcher.DispatchHandler {
  readonly outcome: Promise<Exchanged>;
  readonly #resolve: (outcome: Exchanged) => void;
  readonly #bytesMax: number;
  #over = false;
  /** There as soon as the first byte may have left. */
  #controller: Dispatcher.DispatchController | null = null;
  #status = 0;
  #headers: Extract<Exchanged, { answered: true }>["headers"] = {};
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(bytesMax: number) {
    const { promise, resolve } = Promise.withResolvers<Exchanged>();
    this.outcome = promise;
    this.#resolve = resolve;
    this.#bytesMax = bytesMax;
  }

  /** Nobody waits any more. What has not been sent by now is not sent. */
  giveUp(why: string): void {
    const controller = this.#controller;
    this.#fail(why);
    controller?.abort(new Error(why));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#over) controller.abort(new Error("given up before it was sent"));
    else this.#controller = controller;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>>[2],
  ): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) this.giveUp(`the answer is larger than ${this.#bytesMax} bytes`);
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    const body = Buffer.concat(this.#chunks).toString("utf8");
    this.#end({ answered: true, status: this.#status, headers: this.#headers, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail((error as NodeJS.ErrnoException).code ?? error.message);
  }

  #fail(why: string): void {
    this.#end({ answered: false, why, sent: this.#controller !== null });
  }

  #end(outcome: Exchanged): void {
    this.#over = true;
    this.#resolve(outcome);
  }
}

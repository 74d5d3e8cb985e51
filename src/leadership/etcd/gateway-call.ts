/**
 * One call to the gateway of etcd. It ends exactly once and within its deadline. If there is no reply, it says whether
 * the request may have been sent.
 */

import type { Dispatcher } from "undici";
import type { Clock } from "../../platform/clock.ts";

export type CallEnd =
  | { readonly ended: "reply"; readonly status: number; readonly body: string }
  /** `sent`: its first byte may have left, so that it may have been carried out. */
  | { readonly ended: "broken"; readonly sent: boolean; readonly reason: string };

export interface CallLimits {
  readonly deadlineMs: number;
  /** Within the deadline: an address where nobody answers is given up after this, and nothing was sent there. */
  readonly connectMs: number;
}

export class GatewayCall implements Dispatcher.DispatchHandler {
  readonly end: Promise<CallEnd>;
  readonly #resolve: (end: CallEnd) => void;
  readonly #callOffs: readonly (() => void)[];
  #over = false;
  /** There as soon as the first byte may have left. */
  #controller: Dispatcher.DispatchController | null = null;
  #status = 0;
  readonly #chunks: Buffer[] = [];

  constructor(clock: Clock, { deadlineMs, connectMs }: CallLimits) {
    const { promise, resolve } = Promise.withResolvers<CallEnd>();
    this.end = promise;
    this.#resolve = resolve;
    this.#callOffs = [
      clock.after(deadlineMs, () => this.#giveUp(`no answer within ${Math.ceil(deadlineMs)} ms`)),
      clock.after(connectMs, () => {
        if (!this.#controller) this.#giveUp(`no connection within ${Math.ceil(connectMs)} ms`);
      }),
    ];
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Given up while it waited for a connection: this keeps it from being written after all.
    if (this.#over) controller.abort(new Error("given up before it was sent"));
    else this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#status = status;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#end({ ended: "reply", status: this.#status, body: Buffer.concat(this.#chunks).toString("utf8") });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail((error as NodeJS.ErrnoException).code ?? error.message);
  }

  #giveUp(reason: string): void {
    const controller = this.#controller;
    this.#fail(reason);
    controller?.abort(new Error(reason));
  }

  #fail(reason: string): void {
    this.#end({ ended: "broken", sent: this.#controller !== null, reason });
  }

  #end(end: CallEnd): void {
    if (this.#over) return;
    this.#over = true;
    for (const callOff of this.#callOffs) callOff();
    this.#resolve(end);
  }
}

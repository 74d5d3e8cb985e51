/** A call of this node on a connection, with a whole reply or a stream. Each call ends exactly once. */

import type { Clock } from "../../platform/clock.ts";
import { CALLED_OFF, limitMs, refused, tooLate, unknown } from "../outcome.ts";
import { StreamBody } from "../stream-body.ts";
import type { CallOptions, Failure, Outcome, StreamOptions, StreamOutcome } from "../transport.ts";
import { Credit, Flow } from "./flow-control.ts";

/** What the connection does for its calls. */
export interface Line {
  cancel(id: number): void;
  grant(id: number, bytes: number): void;
}

export abstract class OutgoingCall {
  readonly id: number;
  /** The frame that it was written into. */
  readonly frame: number;
  /** For the parts of a large request. */
  readonly flow = new Flow();
  protected readonly line: Line;
  readonly #cancelDeadline: () => void;
  readonly #signal: AbortSignal | undefined;
  readonly #abort: (() => void) | null = null;
  #over = false;

  constructor(line: Line, id: number, frame: number, clock: Clock, options: CallOptions | StreamOptions) {
    this.line = line;
    this.id = id;
    this.frame = frame;
    this.#cancelDeadline = clock.after(limitMs(options), () => this.giveUp(tooLate(options)));
    this.#signal = options.signal;
    if (this.#signal) {
      this.#abort = () => this.callOff();
      this.#signal.addEventListener("abort", this.#abort, { once: true });
    }
  }

  abstract head(
    status: number,
    headers: Record<string, string>,
    frame: Buffer,
    bodyAt: number | null,
    end: number,
  ): void;
  abstract data(chunk: Buffer, ended: boolean): void;
  protected abstract failed(failure: Failure): void;

  /** The peer says so, or the connection is gone. */
  fail(failure: Failure): void {
    if (this.over()) this.failed(failure);
  }

  protected callOff(): void {
    this.giveUp(CALLED_OFF);
  }

  protected giveUp(reason: string): void {
    if (!this.over()) return;
    this.line.cancel(this.id);
    this.failed(unknown(reason));
  }

  protected headCame(): void {
    this.#cancelDeadline();
  }

  /** True once. */
  protected over(): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.flow.close();
    this.#cancelDeadline();
    if (this.#abort) this.#signal?.removeEventListener("abort", this.#abort);
    return true;
  }
}

export class MeshCall extends OutgoingCall {
  readonly outcome: Promise<Outcome>;
  readonly #resolve: (outcome: Outcome) => void;
  readonly #bytesMax: number;
  readonly #credit: Credit;
  #status = 0;
  #headers: Record<string, string> = {};
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(line: Line, id: number, frame: number, clock: Clock, options: CallOptions, bytesMax: number) {
    super(line, id, frame, clock, options);
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    this.outcome = promise;
    this.#resolve = resolve;
    this.#bytesMax = bytesMax;
    this.#credit = new Credit((bytes) => this.line.grant(this.id, bytes));
  }

  override head(
    status: number,
    headers: Record<string, string>,
    frame: Buffer,
    bodyAt: number | null,
    end: number,
  ): void {
    this.#status = status;
    this.#headers = headers;
    if (bodyAt !== null) this.#done(frame.toString("utf8", bodyAt, end));
  }

  override data(chunk: Buffer, ended: boolean): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) return this.giveUp(`the reply is larger than ${this.#bytesMax} bytes`);
    this.#chunks.push(chunk);
    if (ended) this.#done(Buffer.concat(this.#chunks).toString("utf8"));
    else this.#credit.read(chunk.length);
  }

  protected override failed(failure: Failure): void {
    this.#chunks = [];
    this.#resolve(failure);
  }

  #done(body: string): void {
    if (!this.over()) return;
    this.#resolve({ outcome: "reply", status: this.#status, headers: this.#headers, body });
  }
}

export class MeshStream extends OutgoingCall {
  readonly outcome: Promise<StreamOutcome>;
  readonly #resolve: (outcome: StreamOutcome) => void;
  readonly #credit: Credit;
  #body: StreamBody | null = null;

  constructor(line: Line, id: number, frame: number, clock: Clock, options: StreamOptions) {
    super(line, id, frame, clock, options);
    const { promise, resolve } = Promise.withResolvers<StreamOutcome>();
    this.outcome = promise;
    this.#resolve = resolve;
    this.#credit = new Credit((bytes) => this.line.grant(this.id, bytes));
  }

  override head(
    status: number,
    headers: Record<string, string>,
    frame: Buffer,
    bodyAt: number | null,
    end: number,
  ): void {
    this.headCame();
    this.#body = new StreamBody({
      pause: () => this.#credit.hold(),
      resume: () => this.#credit.release(),
      leave: (reason) => this.giveUp(reason),
    });
    this.#resolve({ outcome: "reply", status, headers, body: this.#body });
    if (bodyAt === null) return;
    this.#body.push(frame.subarray(bodyAt, end));
    this.#end();
  }

  override data(chunk: Buffer, ended: boolean): void {
    this.#body?.push(chunk);
    if (ended) this.#end();
    else this.#credit.read(chunk.length);
  }

  protected override callOff(): void {
    if (this.#body) this.#body.callOff(CALLED_OFF);
    else super.callOff();
  }

  protected override failed({ outcome, reason }: Failure): void {
    if (this.#body) this.#body.fail(`the reply broke off: ${reason}`);
    else this.#resolve(outcome === "refused" ? refused(reason) : unknown(reason));
  }

  #end(): void {
    if (this.over()) this.#body?.end();
  }
}

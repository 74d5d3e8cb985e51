/**
 * A tracer provider that remembers, written against the API of OpenTelemetry alone: what an operator's SDK is for a node. Spans that
 * were never ended are not remembered.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import {
  context,
  ROOT_CONTEXT,
  SpanKind,
  trace,
  type Attributes,
  type Context,
  type ContextManager,
  type Span,
  type SpanContext,
  type SpanOptions,
  type SpanStatus,
  type Tracer,
  type TracerProvider,
} from "@opentelemetry/api";

export interface MadeSpan {
  readonly name: string;
  readonly kind: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly parentIsRemote: boolean;
  readonly attributes: Attributes;
  readonly status: SpanStatus | null;
  readonly startedAt: number;
  readonly endedAt: number;
}

export class MemoryTracer implements TracerProvider {
  readonly spans: MadeSpan[] = [];
  readonly #onEnd: (span: MadeSpan) => void;

  constructor(onEnd: (span: MadeSpan) => void = () => {}) {
    this.#onEnd = onEnd;
  }

  /** From now on whoever asks the API for a tracer gets this one. */
  register(): this {
    trace.setGlobalTracerProvider(this);
    context.setGlobalContextManager(new LocalContexts());
    return this;
  }

  unregister(): void {
    trace.disable();
    context.disable();
  }

  named(name: string): MadeSpan[] {
    return this.spans.filter((span) => span.name === name);
  }

  getTracer(): Tracer {
    const ended = (span: MadeSpan): void => {
      this.spans.push(span);
      this.#onEnd(span);
    };
    const startSpan = (name: string, options: SpanOptions = {}, within: Context = context.active()): Span =>
      new MemorySpan(name, options, trace.getSpanContext(within), ended);
    return {
      startSpan,
      startActiveSpan: () => {
        throw new Error("not used");
      },
    };
  }
}

class MemorySpan implements Span {
  readonly #name: string;
  readonly #kind: SpanKind;
  readonly #parent: SpanContext | undefined;
  readonly #own: SpanContext;
  readonly #attributes: Attributes;
  readonly #startedAt: number;
  readonly #onEnd: (span: MadeSpan) => void;
  #status: SpanStatus | null = null;

  constructor(
    name: string,
    options: SpanOptions,
    parent: SpanContext | undefined,
    onEnd: (span: MadeSpan) => void,
  ) {
    this.#name = name;
    this.#kind = options.kind ?? SpanKind.INTERNAL;
    this.#parent = parent;
    this.#own = {
      traceId: parent?.traceId ?? randomBytes(16).toString("hex"),
      spanId: randomBytes(8).toString("hex"),
      traceFlags: 1,
      ...(parent?.traceState && { traceState: parent.traceState }),
    };
    this.#attributes = { ...options.attributes };
    this.#startedAt = typeof options.startTime === "number" ? options.startTime : Date.now();
    this.#onEnd = onEnd;
  }

  spanContext(): SpanContext {
    return this.#own;
  }

  setAttribute(key: string, value: Attributes[string]): this {
    this.#attributes[key] = value;
    return this;
  }

  setAttributes(attributes: Attributes): this {
    Object.assign(this.#attributes, attributes);
    return this;
  }

  setStatus(status: SpanStatus): this {
    this.#status = status;
    return this;
  }

  addEvent(): this {
    return this;
  }

  addLink(): this {
    return this;
  }

  addLinks(): this {
    return this;
  }

  updateName(): this {
    return this;
  }

  isRecording(): boolean {
    return true;
  }

  recordException(): void {}

  end(): void {
    this.#onEnd({
      name: this.#name,
      kind: SpanKind[this.#kind].toLowerCase(),
      traceId: this.#own.traceId,
      spanId: this.#own.spanId,
      parentSpanId: this.#parent?.spanId ?? null,
      parentIsRemote: this.#parent?.isRemote === true,
      attributes: this.#attributes,
      status: this.#status,
      startedAt: this.#startedAt,
      endedAt: Date.now(),
    });
  }
}

class LocalContexts implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();

  active(): Context {
    return this.#storage.getStore() ?? ROOT_CONTEXT;
  }

  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    within: Context,
    part: F,
    thisArg?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#storage.run(within, () => part.apply(thisArg as never, args));
  }

  bind<T>(_within: Context, target: T): T {
    return target;
  }

  enable(): this {
    return this;
  }

  disable(): this {
    this.#storage.disable();
    return this;
  }
}

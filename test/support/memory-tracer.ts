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
    const ended = (span: MadeSpan): void => void this.spans.push(span);
    const startSpan = (name: string, options: SpanOptions = {}, within: Context = context.active()): Span =>
      memorySpan(name, options, trace.getSpanContext(within), ended);
    return {
      startSpan,
      startActiveSpan: () => {
        throw new Error("not used");
      },
    };
  }
}

function memorySpan(
  name: string,
  { kind = SpanKind.INTERNAL, attributes: given, startTime }: SpanOptions,
  parent: SpanContext | undefined,
  onEnd: (span: MadeSpan) => void,
): Span {
  const own: SpanContext = {
    traceId: parent?.traceId ?? randomBytes(16).toString("hex"),
    spanId: randomBytes(8).toString("hex"),
    traceFlags: 1,
    ...(parent?.traceState && { traceState: parent.traceState }),
  };
  const attributes = { ...given };
  const startedAt = typeof startTime === "number" ? startTime : Date.now();
  let status: SpanStatus | null = null;
  const span: Span = {
    spanContext: () => own,
    setAttribute: (key, value) => span.setAttributes({ [key]: value }),
    setAttributes: (more) => {
      Object.assign(attributes, more);
      return span;
    },
    setStatus: (told) => {
      status = told;
      return span;
    },
    addEvent: () => span,
    addLink: () => span,
    addLinks: () => span,
    updateName: () => span,
    isRecording: () => true,
    recordException: () => {},
    end: () =>
      onEnd({
        name,
        kind: SpanKind[kind].toLowerCase(),
        traceId: own.traceId,
        spanId: own.spanId,
        parentSpanId: parent?.spanId ?? null,
        parentIsRemote: parent?.isRemote === true,
        attributes,
        status,
        startedAt,
        endedAt: Date.now(),
      }),
  };
  return span;
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

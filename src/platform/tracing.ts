/**
 * Traces and meters, through the OpenTelemetry API only; the operator chooses the SDK. Until one is registered, no spans are created. The
 * trace context of a caller is still stored with its jobs.
 */

import type * as Api from "@opentelemetry/api";
import { BatonError, reasonOf } from "../core/errors.ts";
import { spanNameOf, traceText } from "../core/trace.ts";
import { TelemetryApi } from "./telemetry/telemetry-api.ts";
import type { TelemetryOptions } from "./telemetry/telemetry.ts";

export const ACTIVE = Symbol("active");

export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOptions {
  readonly kind: "producer" | "consumer" | "client" | "internal";
  /**
   * As it is kept with a job (core/trace.ts); null for a trace of its own. `ACTIVE` is for what a caller waits for: what else happens here
   * may have been set off by others.
   */
  readonly parent: string | null | typeof ACTIVE;
  readonly attributes: Attributes;
  readonly startedAt?: number;
}

export interface Span {
  readonly trace: string;
  /** Makes it the active one: what is started in there, also later, is a part of it. */
  run<T>(part: () => T): T;
  set(attributes: Attributes): void;
  end(failure?: { readonly code: string; readonly message: string } | null): void;
}

export interface Tracing {
  /** Whether traces are recorded. Asked for every job, so it costs next to nothing. */
  readonly on: boolean;
  start(name: string, options: SpanOptions): Span;
  active(): string | null;
  /** The same object as long as the same provider is registered; null while there is none. */
  meter(): Meter | null;
}

/** As much of the API's meter as is used. */
export interface Meter {
  createCounter(name: string, options: MeterOptions): { add(count: number, attributes: Attributes): void };
  createHistogram(
    name: string,
    options: MeterOptions & { readonly advice: { explicitBucketBoundaries: number[] } },
  ): { record(value: number, attributes: Attributes): void };
}

interface MeterOptions {
  readonly description: string;
  readonly unit: string;
}

/** What stands for the provider before an SDK has registered one, and hands on to it afterwards. */
interface Proxy extends Api.TracerProvider {
  getDelegateTracer?(name: string, version?: string): Api.Tracer | undefined;
}

export function openTelemetry(version: string, options: TelemetryOptions = {}): Tracing {
  const telemetry = new TelemetryApi(options);
  let provider: Proxy | null = null;
  let tracer: Api.Tracer | null = null;
  let meters: Api.MeterProvider | null = null;
  let meter: Meter | null = null;

  function find(): Api.Tracer | null {
    const registered: Proxy | null = telemetry.tracerProvider();
    if (registered === provider && tracer) return tracer;
    provider = registered;
    if (registered === null) return (tracer = null);
    // Without this function it is a provider that was put there past the API: all of its tracers record.
    tracer =
      (registered.getDelegateTracer
        ? registered.getDelegateTracer("baton", version)
        : registered.getTracer("baton", version)) ?? null;
    return tracer;
  }

  return {
    get on() {
      return find() !== null;
    },

    start(name, { kind, parent, attributes, startedAt }) {
      const api = telemetry.require();
      const { context, ROOT_CONTEXT, SpanKind, trace } = api;
      const within =
        parent === ACTIVE ? context.active() : parent === null ? ROOT_CONTEXT : remote(api, parent);
      const spanOptions = {
        kind: SpanKind[kind.toUpperCase() as Uppercase<typeof kind>],
        attributes,
        ...(startedAt !== undefined && { startTime: startedAt }),
      };
      const starting = find() ?? trace.getTracer("baton", version);
      return recorded(api, starting.startSpan(name, spanOptions, within), within);
    },

    active: () => textOf(telemetry.get()?.trace.getActiveSpan()),

    meter() {
      const registered = telemetry.meterProvider();
      if (registered !== meters) {
        meters = registered;
        meter = registered?.getMeter("baton", version) ?? null;
      }
      return meter;
    },
  };
}

function recorded({ context, SpanStatusCode, trace }: typeof Api, span: Api.Span, within: Api.Context): Span {
  return {
    trace: textOf(span)!,
    run: (part) => context.with(trace.setSpan(within, span), part),
    set: (attributes) => void span.setAttributes(attributes),
    end(failure = null) {
      if (failure) {
        span.setAttributes({ "error.type": failure.code });
        span.setStatus({ code: SpanStatusCode.ERROR, message: failure.message });
      }
      span.end();
    },
  };
}

function textOf(span: Api.Span | undefined): string | null {
  if (!span) return null;
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  return traceText({ traceId, spanId, flags: traceFlags, state: traceState?.serialize() ?? null });
}

/** Where whoever it names goes on: nothing of what is active here, which may be of another job. */
function remote(api: typeof Api, trace: string): Api.Context {
  const { traceId, spanId, flags, state } = spanNameOf(trace);
  const { createTraceState, ROOT_CONTEXT, trace: traces, TraceFlags } = api;
  return traces.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: flags & TraceFlags.SAMPLED,
    isRemote: true,
    ...(state !== null && { traceState: createTraceState(state) }),
  });
}

export function failureOf(error: unknown): { readonly code: string; readonly message: string } {
  const code = error instanceof BatonError ? error.code : "ERROR";
  return { code, message: reasonOf(error) };
}

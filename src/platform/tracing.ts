/**
 * Traces, through the OpenTelemetry API only; the operator chooses the SDK. Until one is registered, no spans are created. The trace context
 * of a caller is still stored with its jobs.
 */

import type * as Api from "@opentelemetry/api";
import { BatonError, reasonOf } from "../core/errors.ts";
import { spanNameOf, traceText } from "../core/trace.ts";
import { loadPackage } from "./load-package.ts";

/** Where the API stores what an SDK registers. The package is loaded only if this exists: before, nothing can record. */
const REGISTERED = Symbol.for("opentelemetry.js.api.1");
let loaded: typeof Api | null = null;

function api(): typeof Api {
  return (loaded ??= loadPackage<typeof Api>("@opentelemetry/api"));
}

function isRegistered(): boolean {
  return REGISTERED in globalThis;
}

export const ACTIVE = Symbol("active");

export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOptions {
  readonly kind: "producer" | "consumer" | "client";
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
}

/** What stands for the provider before an SDK has registered one, and hands on to it afterwards. */
interface Proxy extends Api.TracerProvider {
  getDelegateTracer?(name: string, version?: string): Api.Tracer | undefined;
}

export function openTelemetry(version: string): Tracing {
  let provider: Proxy | null = null;
  let tracer: Api.Tracer | null = null;

  function find(): Api.Tracer | null {
    if (!isRegistered()) return null;
    const registered = api().trace.getTracerProvider() as Proxy;
    if (registered === provider && tracer) return tracer;
    provider = registered;
    // Without this function it is a provider that was put there past the API: all of its tracers record.
    tracer =
      (provider.getDelegateTracer
        ? provider.getDelegateTracer("baton", version)
        : provider.getTracer("baton", version)) ?? null;
    return tracer;
  }

  return {
    get on() {
      return find() !== null;
    },

    start(name, { kind, parent, attributes, startedAt }) {
      const { context, ROOT_CONTEXT, SpanKind, trace } = api();
      const within = parent === ACTIVE ? context.active() : parent === null ? ROOT_CONTEXT : remote(parent);
      const options = {
        kind: SpanKind[kind.toUpperCase() as Uppercase<typeof kind>],
        attributes,
        ...(startedAt !== undefined && { startTime: startedAt }),
      };
      const starting = find() ?? trace.getTracer("baton", version);
      return recorded(starting.startSpan(name, options, within), within);
    },

    active: () => (isRegistered() ? textOf(api().trace.getActiveSpan()) : null),
  };
}

function recorded(span: Api.Span, within: Api.Context): Span {
  const { context, SpanStatusCode, trace } = api();
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
function remote(trace: string): Api.Context {
  const { traceId, spanId, flags, state } = spanNameOf(trace);
  const { createTraceState, ROOT_CONTEXT, trace: traces, TraceFlags } = api();
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

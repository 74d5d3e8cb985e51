/**
 * The W3C trace context of the request that submitted a job. It is stored with the job and sent along with it:
 * `traceparent`, followed by a space and `tracestate` if there was one.
 *
 *   00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 vendor=value
 *      trace id                         span id          flags
 */

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** The minimum that the standard requires; more is dropped, which no trace needs. */
const TRACESTATE_LENGTH_MAX = 512;
const TRACESTATE = /^[\x20-\x7e]+$/;

export interface SpanName {
  readonly traceId: string;
  readonly spanId: string;
  /** One byte; its lowest bit: the trace is recorded. */
  readonly flags: number;
  readonly state: string | null;
}

/** Null if the headers contain no trace. */
export function traceOf(traceparent: unknown, tracestate: unknown = null): string | null {
  if (typeof traceparent !== "string" || traceparent.length > 256) return null;
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(traceparent) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return null;
  if (/^0+$/.test(traceId!) || /^0+$/.test(spanId!)) return null;
  const parent = `00-${traceId}-${spanId}-${flags}`;
  const state = typeof tracestate === "string" ? tracestate.trim() : "";
  return state.length <= TRACESTATE_LENGTH_MAX && TRACESTATE.test(state) ? `${parent} ${state}` : parent;
}

const PARENT_LENGTH = 55;

/** As `traceText` writes it, or a `traceparent` alone; null if it is neither. */
export function readTrace(text: unknown): string | null {
  if (typeof text !== "string" || (text.length > PARENT_LENGTH && text[PARENT_LENGTH] !== " ")) return null;
  return traceOf(text.slice(0, PARENT_LENGTH), text.slice(PARENT_LENGTH + 1));
}

export function traceHeaders(trace: string): { readonly traceparent: string; readonly tracestate?: string } {
  const traceparent = trace.slice(0, PARENT_LENGTH);
  return trace.length > PARENT_LENGTH
    ? { traceparent, tracestate: trace.slice(PARENT_LENGTH + 1) }
    : { traceparent };
}

export function traceText({ traceId, spanId, flags, state }: SpanName): string {
  const parent = `00-${traceId}-${spanId}-${(flags & 0xff).toString(16).padStart(2, "0")}`;
  return state ? `${parent} ${state}` : parent;
}

export function spanNameOf(trace: string): SpanName {
  return {
    traceId: trace.slice(3, 35),
    spanId: trace.slice(36, 52),
    flags: Number.parseInt(trace.slice(53, PARENT_LENGTH), 16),
    state: traceHeaders(trace).tracestate ?? null,
  };
}

/** For log lines; empty for a job without a trace. */
export function traceFields(trace: string | null | undefined): { readonly traceId?: string } {
  return trace ? { traceId: trace.slice(3, 35) } : {};
}

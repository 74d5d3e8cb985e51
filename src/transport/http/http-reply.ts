/** Converts the reply that undici reports into the terms of the transport interface. */

import type { Dispatcher } from "undici";

export type HttpHeaders = Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>>[2];

export function headersOf(headers: HttpHeaders): Record<string, string> {
  const named: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) named[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return named;
}

/** Whether a reply's end can be told from a connection that broke. */
export function isDelimited(status: number, headers: Readonly<Record<string, string>>): boolean {
  if (status === 204 || status === 304) return true;
  return headers["content-length"] !== undefined || /\bchunked\s*$/i.test(headers["transfer-encoding"] ?? "");
}

/** Where both families of addresses were tried, the error has a code and no text. */
export function describe(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  if (!code) return error.message;
  return error.message ? `${code}: ${error.message}` : code;
}

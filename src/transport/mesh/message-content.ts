/** The content of the messages in a frame. Lengths are validated before they are used. */

import { HEADERS_LENGTH_MAX, METHODS, MeshFault, PATH_LENGTH_MAX, type Message } from "./frame.ts";
import { DEADLINE_HEADER, refused } from "../call-outcome.ts";
import type { Failure, PeerRequest, ReceivedRequest } from "../transport.ts";

export interface RequestContent {
  readonly method: PeerRequest["method"];
  readonly path: string;
  readonly headers: Record<string, string>;
  /** 0: for as long as it takes. */
  readonly deadlineMs: number;
  /** The whole body, or null when it comes in parts. */
  readonly body: string | null;
}

export function readRequest({ frame, begin, end }: Message): RequestContent {
  if (end - begin < 12) throw new MeshFault("a request is cut off");
  const method = METHODS[frame[begin + 1]!];
  if (method === undefined) throw new MeshFault("a request has no method");
  const path = begin + 12;
  const headers = path + frame.readUInt16BE(begin + 6);
  const body = headers + frame.readUInt32BE(begin + 8);
  if (body > end) throw new MeshFault("a request is longer than its message");
  return {
    method,
    path: frame.toString("utf8", path, headers),
    headers: readHeaders(frame.toString("utf8", headers, body)),
    deadlineMs: frame.readUInt32BE(begin + 2),
    body: isEnded(frame, begin) ? frame.toString("utf8", body, end) : null,
  };
}

interface ReplyContent {
  readonly status: number;
  readonly headers: Record<string, string>;
  /** Where the whole body begins in the frame, or null when it comes in parts. */
  readonly bodyAt: number | null;
}

export function readReply({ frame, begin, end }: Message): ReplyContent {
  if (end - begin < 7) throw new MeshFault("a reply is cut off");
  const headers = begin + 7;
  const body = headers + frame.readUInt32BE(begin + 3);
  if (body > end) throw new MeshFault("a reply is longer than its message");
  return {
    status: frame.readUInt16BE(begin + 1),
    headers: readHeaders(frame.toString("utf8", headers, body)),
    bodyAt: isEnded(frame, begin) ? body : null,
  };
}

export function readData({ frame, begin, end }: Message): {
  readonly chunk: Buffer;
  readonly ended: boolean;
} {
  if (end <= begin) throw new MeshFault("a part of a body is cut off");
  return { chunk: frame.subarray(begin + 1, end), ended: isEnded(frame, begin) };
}

export function readText({ frame, begin, end }: Message): string {
  return frame.toString("utf8", begin, Math.min(end, begin + 500));
}

function isEnded(frame: Buffer, begin: number): boolean {
  return frame[begin] === 1;
}

export function received(
  { method, path, headers, deadlineMs }: RequestContent,
  from: string,
  body: string,
  signal: AbortSignal,
): ReceivedRequest {
  if (deadlineMs > 0) headers[DEADLINE_HEADER] ??= String(deadlineMs);
  return { from, method, path, headers, body, signal };
}

export function requestHeaders({ path, headers }: PeerRequest): string | Failure {
  const text = writeHeaders(headers);
  if (text === null) return refused("a header contains a line break");
  if (path.length <= PATH_LENGTH_MAX && text.length <= HEADERS_LENGTH_MAX) return text;
  return refused("the path or the headers of the request are too long");
}

/** The headers of a reply; throws for those that cannot be sent. */
export function replyHeaders(headers: Readonly<Record<string, string>> | undefined): string {
  const text = writeHeaders(headers);
  if (text !== null && text.length <= HEADERS_LENGTH_MAX) return text;
  throw new Error("the headers of a reply are too long, or contain a line break");
}

/** Null: a header that HTTP could not carry either. */
export function writeHeaders(headers: Readonly<Record<string, string>> | undefined): string | null {
  let text = "";
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined) continue;
    if (UNFIT.test(name) || UNFIT.test(value)) return null;
    text += text === "" ? `${name.toLowerCase()}\n${value}` : `\n${name.toLowerCase()}\n${value}`;
  }
  return text;
}

const UNFIT = /[\0\r\n]/;

/** Name and value in turn, a line each. Cut out one by one: splitting the whole text first takes half as long again. */
function readHeaders(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (let at = 0; at < text.length;) {
    const cut = text.indexOf("\n", at);
    if (cut < 0) throw new MeshFault("a header has no value");
    const next = text.indexOf("\n", cut + 1);
    const end = next < 0 ? text.length : next;
    headers[text.slice(at, cut)] = text.slice(cut + 1, end);
    at = end + 1;
  }
  return headers;
}

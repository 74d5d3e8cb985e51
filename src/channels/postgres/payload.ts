/**
 * The payload of a NOTIFY: `<origin>:<number>:<entries>`. The origin is the channels object that sent it; the number counts its payloads
 * from 1. So no two are equal (PostgreSQL would drop the second of a transaction), and one that returns to its origin proves that the
 * connection receives. The SQL functions that submit jobs send such payloads as well. The entries are a JSON array of
 *
 *     [topic, key, body]    a message
 *     [topic, id]           a message that was too large, and stands in the table `hint`
 *     [queue]               a queue has something new
 *
 * Entries of another form come from a newer version and are ignored.
 */

import { split } from "../../platform/loop.ts";

export type Entry =
  | { readonly kind: "message"; readonly topic: string; readonly key: string; readonly body: unknown }
  | { readonly kind: "stored"; readonly topic: string; readonly id: string }
  | { readonly kind: "queue"; readonly queue: string };

export interface Payload {
  readonly origin: string;
  readonly number: number;
  /** Parsed on demand: most payloads that a node receives are its own. */
  entries(): readonly Entry[];
}

/** PostgreSQL refuses 8,000. */
export const PAYLOAD_BYTES_MAX = 7_999;
/** An origin, a number below 2^53 and the two colons. */
const ADDRESS_BYTES_MAX = 64;
const ENTRY_BYTES_MAX = PAYLOAD_BYTES_MAX - ADDRESS_BYTES_MAX - "[]".length;

export function messageEntry(topic: string, key: string, text: string): string {
  return `[${JSON.stringify(topic)},${JSON.stringify(key)},${text}]`;
}

export function storedEntry(topic: string, id: string): string {
  return JSON.stringify([topic, id]);
}

export function queueEntry(queue: string): string {
  return JSON.stringify([queue]);
}

export function fits(entry: string): boolean {
  // UTF-8 takes at most three bytes for each UTF-16 unit: the short ones need not be counted.
  return entry.length * 3 <= ENTRY_BYTES_MAX || Buffer.byteLength(entry) <= ENTRY_BYTES_MAX;
}

/** Entries that fit, in their order, in as few payloads as that allows; one payload if there are none. */
export function pack(entries: readonly string[], origin: string, nextNumber: () => number): string[] {
  const sizeOf = (entry: string): number => Buffer.byteLength(entry) + ",".length;
  const packed = split(entries, Infinity, sizeOf, ENTRY_BYTES_MAX + ",".length);
  if (packed.length === 0) packed.push([]);
  return packed.map((some) => `${origin}:${nextNumber()}:[${some.join(",")}]`);
}

/** Null when it is none of ours: anybody may NOTIFY. */
export function parsePayload(text: string): Payload | null {
  const [, origin, number, json] = /^([0-9a-z]+):(\d+):(\[.*\])$/su.exec(text) ?? [];
  if (origin === undefined || number === undefined || json === undefined) return null;
  return { origin, number: Number(number), entries: () => parseEntries(json) };
}

function parseEntries(json: string): Entry[] {
  let values: unknown[];
  try {
    values = JSON.parse(json) as unknown[];
  } catch {
    return [];
  }
  return values.flatMap((value) => entryOf(value) ?? []);
}

function entryOf(value: unknown): Entry | null {
  if (!Array.isArray(value) || typeof value[0] !== "string") return null;
  const [name, second, body] = value as [string, unknown, unknown];
  if (value.length === 1) return { kind: "queue", queue: name };
  if (typeof second !== "string") return null;
  if (value.length === 2) return { kind: "stored", topic: name, id: second };
  if (value.length === 3) return { kind: "message", topic: name, key: second, body };
  return null;
}

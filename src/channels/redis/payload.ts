/**
 * An entry of the stream `topics`: the fields `number` and `origin`, and then one field per message. The name of that field is the topic, and
 * its value `<key as JSON text>\n<body as JSON text>`, so a reader need not parse a message without subscribers. A message that is too
 * large has a key of its own, and its value is `@<id>`. The number counts entries from 1: any number but the next means missed entries.
 */

import { split } from "../../platform/loop.ts";
import type { EncodedMessage } from "../message-encoding.ts";

export interface TopicEntry {
  readonly number: number;
  readonly origin: string;
  readonly values: readonly TopicValue[];
}

export interface TopicValue {
  readonly topic: string;
  readonly value: string;
}

/** The stream keeps thousands of entries: this much for each is what bounds its memory. */
export const VALUE_LENGTH_MAX = 16_000;
/** In one entry, two fields each: Lua can hand on some 8,000 values at a time. */
const VALUES_MAX = 1_000;

export function messageValue({ key, text }: EncodedMessage): string {
  return `${JSON.stringify(key)}\n${text}`;
}

export function storedValue(id: string): string {
  return `@${id}`;
}

/** Null when it is a message itself. */
export function storedId(value: string): string | null {
  return value.startsWith("@") ? value.slice(1) : null;
}

export function messageOf(value: string): EncodedMessage {
  const cut = value.indexOf("\n");
  return { key: JSON.parse(value.slice(0, cut)) as string, text: value.slice(cut + 1) };
}

/** The fields of as few entries as their size allows, in the order given. */
export function pack(values: readonly TopicValue[]): string[][] {
  const entries = split(values, VALUES_MAX, ({ value }) => value.length, VALUE_LENGTH_MAX);
  return entries.map((entry) => entry.flatMap(({ topic, value }) => [topic, value]));
}

/** Null when it is none of ours: anybody may add to a stream. */
export function parseEntry(fields: readonly string[]): TopicEntry | null {
  const [numberName, number, originName, origin] = fields;
  if (numberName !== "number" || originName !== "origin") return null;
  const values: TopicValue[] = [];
  for (let i = 4; i + 1 < fields.length; i += 2) values.push({ topic: fields[i]!, value: fields[i + 1]! });
  return { number: Number(number), origin: origin!, values };
}

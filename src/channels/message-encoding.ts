/** Messages as text: bodies are passed as JSON, so that each reader gets its own copy. */

import { BatonError } from "../core/errors.ts";
import type { Message } from "./channels.ts";

export interface EncodedMessage {
  readonly key: string;
  readonly text: string;
}

/** Both stand in the keys of an index, which has room for some 2,700 bytes, and each unit of a key may take six. */
const NAME_LENGTH_MAX = 288;
const NAME_BYTES_MAX = 864;
const KEY_LENGTH_MAX = 255;

/** All of them, or none: a bad one is refused by its place. */
export function encodeMessage(messages: readonly Message[]): EncodedMessage[] {
  return messages.map((message, index) => ({ key: keyOf(message, index), text: textOf(message, index) }));
}

export function checkName(field: "queue" | "topic", name: string): void {
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  if (typeof name === "string" && /^[^\u0000-\u001f]+$/.test(name) && fits(name)) return;
  const message = `the name of a ${field} must be 1 to ${NAME_LENGTH_MAX} characters without control characters, not ${JSON.stringify(name)}`;
  throw new BatonError("BAD_REQUEST", message, { field });
}

function fits(name: string): boolean {
  return name.length <= NAME_LENGTH_MAX && Buffer.byteLength(JSON.stringify(name)) <= NAME_BYTES_MAX;
}

export function checkBatchMax(batchMax: number): void {
  if (Number.isSafeInteger(batchMax) && batchMax >= 1) return;
  throw new BatonError("BAD_REQUEST", `batchMax must be a whole number from 1, not ${batchMax}`, {
    field: "batchMax",
  });
}

function keyOf({ key }: Message, index: number): string {
  if (typeof key === "string" && key.length <= KEY_LENGTH_MAX) return key;
  const message = `the key of message ${index} must be a string of at most ${KEY_LENGTH_MAX} characters; put what is longer into the body`;
  throw new BatonError("BAD_REQUEST", message, { field: `[${index}].key` });
}

function textOf({ body }: Message, index: number): string {
  let text: string | undefined;
  let cause: unknown;
  try {
    text = JSON.stringify(body);
  } catch (error) {
    cause = error;
  }
  if (text !== undefined) return text;
  const message = `the body of message ${index} must be a plain JSON value`;
  throw new BatonError("BAD_REQUEST", message, { field: `[${index}].body` }, { cause });
}

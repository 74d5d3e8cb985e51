/** Parses a JSON body. Refuses deep nesting and keys that could reach a prototype. */

import secureJson from "secure-json-parse";
import { BatonError } from "../../core/errors.ts";

/** Deeper values overflow the stack of code that walks or prints them. */
export const PAYLOAD_DEPTH_MAX = 64;

const REFUSE = { protoAction: "error", constructorAction: "error" } as const;
/** Payloads are one level deep in a job, two in an array of jobs. */
const DEPTH_IN_JOB = 1;
const DEPTH_IN_ARRAY = 2;

/** Undefined for an empty text, as of a client that always sends the header; throws BAD_JSON. */
export function readJson(text: string): unknown {
  if (text === "") return undefined;
  const depth = text.charCodeAt(0) === OPEN_ARRAY ? DEPTH_IN_ARRAY : DEPTH_IN_JOB;
  if (nestedDeeperThan(text, PAYLOAD_DEPTH_MAX + depth)) {
    throw new BatonError("BAD_JSON", `the payload is nested deeper than ${PAYLOAD_DEPTH_MAX} levels`);
  }
  try {
    return secureJson.parse(text, REFUSE);
  } catch {
    throw explain(text);
  }
}

function explain(text: string): BatonError {
  try {
    JSON.parse(text);
  } catch (error) {
    return new BatonError("BAD_JSON", `the body is not valid JSON: ${(error as Error).message}`);
  }
  return new BatonError(
    "BAD_JSON",
    'the keys "__proto__" and "constructor.prototype" are not accepted; choose other names',
  );
}

const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Looks at the text, because a value that is too deep should not come to be. */
export function nestedDeeperThan(text: string, max: number): boolean {
  if (text.length <= max) return false;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        if (++depth > max) return true;
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth--;
        break;
      case QUOTE:
        for (i++; i < text.length && text.charCodeAt(i) !== QUOTE; i++) {
          if (text.charCodeAt(i) === BACKSLASH) i++;
        }
        break;
      default:
        break;
    }
  }
  return false;
}

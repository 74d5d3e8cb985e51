/** Reads a JSON body: nothing compressed, nothing nested without end, no key that could reach a prototype. */

import type { FastifyInstance, FastifyRequest } from "fastify";
import { BatonError } from "../core/errors.ts";

/** Deeper values overflow the stack of whoever walks or prints them. */
export const PAYLOAD_DEPTH_MAX = 64;

declare module "fastify" {
  interface FastifyRequest {
    /** The body as it came; empty when there was none. */
    bodyText: string;
  }
}

type Done = (error: Error | null, body?: unknown) => void;
type Parser = (request: FastifyRequest, text: string, done: Done) => void;
/** Undefined for an empty text; throws BAD_JSON. */
export type ReadJson = (text: string) => unknown;

export function jsonReader(app: FastifyInstance): ReadJson {
  const parse = app.getDefaultJsonParser("error", "error") as unknown as (
    request: null,
    text: string,
    done: Done,
  ) => void;
  // The parser below answers before it returns, so one slot serves all requests.
  let failed = false;
  let value: unknown;
  const keep: Done = (error, body) => {
    failed = error !== null;
    value = body;
  };
  return (text) => {
    // A client that always sends the header may have nothing to say.
    if (text === "") return undefined;
    // Payloads stand one level deep in a job, two in an array of jobs.
    const depthMax = PAYLOAD_DEPTH_MAX + (text.charCodeAt(0) === OPEN_ARRAY ? 2 : 1);
    if (nestedDeeperThan(text, depthMax)) {
      throw new BatonError("BAD_JSON", `the payload is nested deeper than ${PAYLOAD_DEPTH_MAX} levels`);
    }
    parse(null, text, keep);
    const body = value;
    value = undefined;
    if (failed) throw explain(text);
    return body;
  };
}

/** The text is kept beside the value: a request that is passed on goes as it came. */
export function jsonBodyParser(read: ReadJson): Parser {
  return (request, text, done) => {
    const encoding = request.headers["content-encoding"];
    if (encoding !== undefined && encoding !== "identity") {
      return done(
        new BatonError("UNSUPPORTED_MEDIA_TYPE", "compressed bodies are not accepted; send plain JSON"),
      );
    }
    request.bodyText = text;
    let body: unknown;
    try {
      body = read(text);
    } catch (error) {
      return done(error as Error);
    }
    done(null, body);
  };
}

/** Off the fast path: parses again to learn what was wrong. */
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

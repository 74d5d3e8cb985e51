/** Requests to the node that served this page. Routes and bodies are those of the table of operations, checked by the compiler. */

import { signal } from "@preact/signals";
import type { AnswerOf, Parts, Route } from "../../../src/api/operation-table.ts";
import { routePath } from "../../../src/client/route-request.ts";
import { Problem, problemIn } from "./problem.ts";

/** Where the API is: beside the page, whatever the prefix. The worker of the streams lies in assets/, beside the page too. */
export const BASE =
  typeof document === "undefined"
    ? new URL("../", self.location.href).href
    : new URL("./", document.baseURI).href;

/** Longer than a node waits for others that are cut off. */
const TIMEOUT_MS = 20_000;

/** Counts the answers that said: sign in. */
export const refusals = signal(0);

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

export async function call<R extends Route>(
  route: R,
  parts: Parts<R> = {},
  options: CallOptions = {},
): Promise<AnswerOf<R>> {
  const { method, path } = routePath(route, parts);
  const { body } = parts as { body?: unknown };
  const late = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS);
  const reply = await fetch(new URL(path.slice(1), BASE), {
    method,
    credentials: "same-origin",
    headers: {
      accept: "application/json",
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: options.signal ? AbortSignal.any([options.signal, late]) : late,
  }).catch((error: unknown) => {
    throw unreached(error, options.signal);
  });
  const text = await reply.text().catch((error: unknown) => {
    throw unreached(error, options.signal);
  });
  const answer = parsed(text, reply.status);
  if (reply.ok) return answer as AnswerOf<R>;
  if (reply.status === 401) refusals.value++;
  throw problemIn(reply.status, answer);
}

function parsed(text: string, status: number): unknown {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem("BAD_REPLY", `the answer (${status}) is not JSON`, { status });
  }
}

function unreached(error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return error;
  const late = error instanceof DOMException && error.name === "TimeoutError";
  return late
    ? new Problem("TIMEOUT", "the node did not answer in time")
    : new Problem("UNREACHABLE", "the node that served this page does not answer");
}

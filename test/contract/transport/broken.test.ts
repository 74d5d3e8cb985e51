/** Transports with one mistake each, and the promise whose proof must find it. */

import { describe, test } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import type { Outcome, Transport } from "../../../src/transport/transport.ts";
import { openMemoryTransport, type OpenTransport } from "../../support/peer-world.ts";
import { findsOut, inWorldOf } from "../promises.ts";
import { transportPromises } from "./contract.ts";

type Call = Transport["call"];
type Stream = Transport["stream"];

/** The memory transport with another `call` or `stream`. */
function replaced(ways: (call: Call, stream: Stream, inner: Transport) => Partial<Transport>): OpenTransport {
  return async () => {
    const world = await openMemoryTransport();
    const inner = world.transport;
    const call: Call = (...given) => inner.call(...given);
    const stream: Stream = (...given) => inner.stream(...given);
    const transport: Transport = {
      start: () => inner.start(),
      stop: () => inner.stop(),
      [Symbol.asyncDispose]: () => inner.stop(),
      call,
      stream,
      ...ways(call, stream, inner),
    };
    return { ...world, transport };
  };
}

function broken(tamper: (call: Call, inner: Transport) => Call): OpenTransport {
  return replaced((call, _, inner) => ({ call: tamper(call, inner) }));
}

function brokenStream(tamper: (stream: Stream) => Stream): OpenTransport {
  return replaced((_, stream) => ({ stream: tamper(stream) }));
}

function embodied(body: (inner: AsyncIterable<Buffer>) => AsyncIterable<Buffer>): OpenTransport {
  return brokenStream((stream) => async (url, request, options) => {
    const outcome = await stream(url, request, options);
    return outcome.outcome === "reply" ? { ...outcome, body: body(outcome.body) } : outcome;
  });
}

async function* gathered(inner: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const all: Buffer[] = [];
  for await (const chunk of inner) all.push(chunk);
  yield* all;
}

async function* quietlyCut(inner: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* inner;
  } catch {
    // The end, as far as the reader can tell.
  }
}

/** Reads ahead, as fast as it comes. */
function greedy(inner: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const ahead = gathered(inner)[Symbol.asyncIterator]();
  const first = ahead.next();
  first.catch(() => {});
  return {
    async *[Symbol.asyncIterator]() {
      for (let next = await first; !next.done; next = await ahead.next()) yield next.value;
    },
  };
}

function judged(judge: (outcome: Outcome) => Outcome): OpenTransport {
  return broken((call) => async (url, request, options) => judge(await call(url, request, options)));
}

const reply = (status: number, body = ""): Outcome => ({ outcome: "reply", status, headers: {}, body });

const BROKEN: Readonly<Record<string, readonly [OpenTransport, ...sentences: string[]]>> = {
  "calls a refusal a reply": [
    judged((outcome) => (outcome.outcome === "refused" ? reply(502) : outcome)),
    "where nobody listens a call is refused, with a reason",
    "a transport that does not run refuses",
  ],
  "calls a refusal unknown": [
    judged((outcome) => (outcome.outcome === "refused" ? { ...outcome, outcome: "unknown" } : outcome)),
    "where nobody listens a call is refused, with a reason",
    "what cannot be sent is refused, and says what is wrong",
  ],
  "calls what may have happened a refusal": [
    judged((outcome) => (outcome.outcome === "unknown" ? { ...outcome, outcome: "refused" } : outcome)),
    "a peer that dies over a call leaves it unknown, not refused",
    "a peer that does not answer by the deadline leaves the call unknown",
    "a stop ends the calls under way, as unknown",
  ],
  "gives no reasons": [
    judged((outcome) => (outcome.outcome === "reply" ? outcome : { ...outcome, reason: "" })),
    "where nobody listens a call is refused, with a reason",
    "a peer that dies over a call leaves it unknown, not refused",
  ],
  "rejects instead of answering": [
    broken((call) => async (url, request, options) => {
      const outcome = await call(url, request, options);
      if (outcome.outcome !== "reply") throw new Error(outcome.reason);
      return outcome;
    }),
    "where nobody listens a call is refused, with a reason",
  ],
  "takes an error status for a failed call": [
    judged((outcome) =>
      outcome.outcome === "reply" && outcome.status >= 400
        ? { outcome: "unknown", reason: "status" }
        : outcome,
    ),
    "every status is a reply",
  ],
  "follows redirects": [
    broken((call) => async (url, request, options) => {
      const outcome = await call(url, request, options);
      const location = outcome.outcome === "reply" ? outcome.headers["location"] : undefined;
      if (!location) return outcome;
      const { origin, pathname } = new URL(location);
      return call(origin, { ...request, path: pathname }, options);
    }),
    "a redirect is a reply, and nobody follows it",
  ],
  "cuts large replies": [
    judged((outcome) =>
      outcome.outcome === "reply" ? { ...outcome, body: outcome.body.slice(0, 65_536) } : outcome,
    ),
    "large bodies arrive whole, both ways",
  ],
  "forgets the headers of replies": [
    judged((outcome) => (outcome.outcome === "reply" ? { ...outcome, headers: {} } : outcome)),
    "a reply has the peer's status, headers and body",
  ],
  "forgets the query": [
    broken((call) => (url, request, options) => {
      const [path = "/"] = request.path.split("?");
      return call(url, { ...request, path }, options);
    }),
    "the peer gets method, path with its query, headers and body as they were given",
  ],
  "gives the reply of one call to another": [
    broken((call) => {
      let last: Promise<Outcome> | null = null;
      return async (url, request, options) => {
        const before = last;
        last = call(url, request, options);
        return (await before) ?? last;
      };
    }),
    "calls made together get each its own reply",
  ],
  "tries again by itself": [
    broken((call) => async (url, request, options) => {
      const first = await call(url, request, options);
      const again = first.outcome === "unknown" || (first.outcome === "reply" && first.status === 503);
      return again ? call(url, request, options) : first;
    }),
    "nothing is sent twice",
  ],
  "remembers that a peer was away": [
    broken((call) => {
      const away = new Map<string, Outcome>();
      return async (url, request, options) => {
        const outcome = away.get(url) ?? (await call(url, request, options));
        if (outcome.outcome === "refused") away.set(url, outcome);
        return outcome;
      };
    }),
    "a peer that comes back is reached again",
  ],
  "knows no deadline": [
    broken((call) => (url, request, options) => call(url, request, { ...options, deadlineMs: 60_000 })),
    "a peer that does not answer by the deadline leaves the call unknown",
    "the deadline is for the whole reply: one that comes drop by drop does not prolong it",
  ],
  "is early at its deadline": [
    broken(() => async () => ({ outcome: "unknown", reason: "I did not wait" })),
    "a peer that does not answer by the deadline leaves the call unknown",
  ],
  "cannot be called off": [
    broken(
      (call) =>
        (url, request, { deadlineMs }) =>
          call(url, request, { deadlineMs }),
    ),
    "a call that is called off beforehand is refused and reaches nobody",
    "a call that is called off under way ends at once, as unknown",
  ],
  "sends after it was stopped": [
    broken((call, inner) => async (url, request, options) => {
      await inner.start();
      return call(url, request, options);
    }),
    "a transport that does not run refuses",
  ],
  "gives a stream only when it is complete": [
    embodied(gathered),
    "the head of a streamed reply is there before its end",
  ],
  "ends a stream quietly where it was cut": [
    embodied(quietlyCut),
    "a stream that breaks off rejects, after what came before",
    "a stream rejects when its peer dies",
    "a stream is called off by its signal",
  ],
  "reads ahead of a slow reader": [embodied(greedy), "a peer waits for a slow reader of a stream"],
  "does not tell the peer that its reader left": [
    embodied((inner) => {
      const chunks = inner[Symbol.asyncIterator]();
      return { [Symbol.asyncIterator]: () => ({ next: () => chunks.next() }) };
    }),
    "a peer learns that the reader of a stream has left",
  ],
  "cannot call off a stream": [
    brokenStream(
      (stream) =>
        (url, request, { headMs }) =>
          stream(url, request, { headMs }),
    ),
    "a stream is called off by its signal",
  ],
  "waits for ever for the head": [
    brokenStream((stream) => (url, request, options) => stream(url, request, { ...options, headMs: 60_000 })),
    "a stream whose head does not come in time is unknown",
  ],
  "limits the whole stream by the time for its head": [
    brokenStream((stream) => (url, request, options) => {
      const late = new AbortController();
      systemClock.after(options.headMs, () => late.abort());
      return stream(url, request, { ...options, signal: late.signal });
    }),
    "the time for the head does not limit the body",
  ],
  "takes what came of a reply for all of it": [
    replaced((_, stream) => ({
      call: async (url, request, { deadlineMs }) => {
        const outcome = await stream(url, request, { headMs: deadlineMs });
        if (outcome.outcome !== "reply") return outcome;
        const parts: Buffer[] = [];
        for await (const chunk of quietlyCut(outcome.body)) parts.push(chunk);
        return { ...outcome, body: Buffer.concat(parts).toString() };
      },
    })),
    "a reply that breaks off is unknown, never a short one",
  ],
};

describe("the contract of a transport finds out one that", { concurrency: true }, () => {
  for (const [mistake, [open, ...sentences]] of Object.entries(BROKEN)) {
    for (const sentence of sentences) {
      test(`${mistake}: ${sentence}`, () => findsOut(transportPromises, sentence, inWorldOf(open)));
    }
  }
});

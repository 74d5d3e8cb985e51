import assert from "node:assert/strict";
import { systemClock } from "../../../src/platform/clock.ts";
import type { StreamOutcome, Transport } from "../../../src/transport/transport.ts";
import { flowing, reached, type TransportWorld } from "../../support/peer-world.ts";
import type { Promises } from "../promises.ts";
import { eventually } from "../../support/wait.ts";

const LONG = { headMs: 20_000 };
const GET = { method: "GET", path: "/" } as const;
const CHUNK = Buffer.alloc(16 * 1024, "x");

type Reply = Extract<StreamOutcome, { outcome: "reply" }>;

async function open(transport: Transport, url: string, options = {}): Promise<Reply> {
  const outcome = await transport.stream(url, GET, { ...LONG, ...options });
  assert.ok(outcome.outcome === "reply", JSON.stringify(outcome));
  return outcome;
}

async function textOf(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

export const streamPromises: Promises<TransportWorld> = {
  "a stream has the status, the headers and all of the body": async ({ transport, listen }) => {
    const parts = ["grü", "ße ", "😀"];
    const peer = await listen(() => ({
      status: 201,
      headers: { "X-Baton-Epoch": "7" },
      stream: flowing(parts.map((part) => Buffer.from(part))),
    }));
    const reply = await open(transport, peer.url);
    assert.equal(reply.status, 201);
    assert.equal(reply.headers["x-baton-epoch"], "7");
    assert.equal(await textOf(reply.body), parts.join(""));
  },

  "an ordinary reply can be read as a stream, and a streamed one as a whole": async (world) => {
    const body = "0123456789abcdeü".repeat(100_000);
    const peer = await world.listen(({ path }) =>
      path === "/" ? { status: 200, body } : { status: 200, stream: flowing([Buffer.from(body)]) },
    );
    assert.ok((await textOf((await open(world.transport, peer.url)).body)) === body);
    const whole = await world.transport.call(
      peer.url,
      { method: "GET", path: "/stream" },
      { deadlineMs: 20_000 },
    );
    assert.ok(whole.outcome === "reply", JSON.stringify(whole).slice(0, 200));
    assert.ok(whole.body === body);
    const empty = await world.listen(() => ({ status: 204 }));
    assert.equal(await textOf((await open(world.transport, empty.url)).body), "");
  },

  "a long stream arrives whole and in order": async ({ transport, listen }) => {
    const numbers = Array.from({ length: 20_000 }, (_, n) => `${n}\n`);
    const peer = await listen(() => ({
      status: 200,
      stream: flowing(numbers.map((line) => Buffer.from(line.padStart(200, " ")))),
    }));
    const text = await textOf((await open(transport, peer.url)).body);
    assert.ok(text.replaceAll(" ", "") === numbers.join(""), `${text.length} bytes came`);
  },

  "the head of a streamed reply is there before its end": async ({ transport, listen }) => {
    const more = Promise.withResolvers<void>();
    const peer = await listen(() => ({
      status: 200,
      stream: (async function* () {
        yield Buffer.from("first");
        await more.promise;
        yield Buffer.from("second");
      })(),
    }));
    const { body } = await open(transport, peer.url);
    const seen: string[] = [];
    for await (const chunk of body) {
      seen.push(chunk.toString());
      more.resolve();
    }
    assert.equal(seen[0], "first");
    assert.equal(seen.join(""), "firstsecond");
  },

  "a stream that breaks off rejects, after what came before": async ({ transport, listen }) => {
    const peer = await listen(() => "breaks off");
    const { body } = await open(transport, peer.url);
    let seen = "";
    await assert.rejects(
      (async () => {
        for await (const chunk of body) seen += chunk.toString();
      })(),
    );
    assert.equal(seen, "the first part");
  },

  "a stream rejects when its peer dies": async ({ transport, listen }) => {
    const peer = await listen(() => "drips");
    const { body } = await open(transport, peer.url);
    const reading = textOf(body);
    await Promise.all([assert.rejects(reading), peer.kill()]);
  },

  "a peer waits for a slow reader of a stream": async ({ transport, listen }) => {
    let pulled = 0;
    const total = 4_000;
    const peer = await listen(() => ({
      status: 200,
      stream: (async function* () {
        for (; pulled < total; pulled++) yield CHUNK;
      })(),
    }));
    const { body } = await open(transport, peer.url);
    // It has come to rest when nothing more is pulled for a while.
    for (let before = -1; before !== pulled; await systemClock.sleep(200)) before = pulled;
    assert.ok(pulled < total / 2, `${pulled} of ${total} chunks were pulled with nobody reading`);
    let bytes = 0;
    for await (const chunk of body) bytes += chunk.length;
    assert.equal(bytes, total * CHUNK.length);
  },

  "a peer learns that the reader of a stream has left": async ({ transport, listen }) => {
    let left = false;
    const peer = await listen(() => ({
      status: 200,
      stream: (async function* () {
        try {
          for (;;) {
            yield CHUNK;
            await systemClock.sleep(1);
          }
        } finally {
          left = true;
        }
      })(),
    }));
    const { body } = await open(transport, peer.url);
    for await (const chunk of body) if (chunk.length > 0) break;
    await eventually("the reader to leave", () => left, 5_000);
    assert.equal(
      (await transport.call(peer.url, { ...GET, method: "POST" }, { deadlineMs: 50 })).outcome,
      "unknown",
    );
  },

  "a stream is called off by its signal": async ({ transport, listen }) => {
    const peer = await listen(() => "drips");
    const off = new AbortController();
    const { body } = await open(transport, peer.url, { signal: off.signal });
    const reading = textOf(body);
    off.abort();
    await assert.rejects(reading);
    const silent = await listen(() => "is silent");
    const early = new AbortController();
    const head = transport.stream(silent.url, GET, { ...LONG, signal: early.signal });
    await reached(silent, 1);
    early.abort();
    assert.equal((await head).outcome, "unknown");
    const before = await transport.stream(silent.url, GET, { ...LONG, signal: AbortSignal.abort() });
    assert.equal(before.outcome, "refused");
  },

  "a stream whose head does not come in time is unknown": async ({ transport, listen }) => {
    const peer = await listen(() => "is silent");
    const began = systemClock.monotonic();
    const outcome = await transport.stream(peer.url, GET, { headMs: 100 });
    assert.equal(outcome.outcome, "unknown");
    assert.ok(systemClock.monotonic() - began >= 90);
  },

  "the time for the head does not limit the body": async ({ transport, listen }) => {
    const peer = await listen(() => ({
      status: 200,
      stream: (async function* () {
        for (let i = 0; i < 8; i++) {
          yield Buffer.from(".");
          await systemClock.sleep(50);
        }
      })(),
    }));
    assert.equal(await textOf((await open(transport, peer.url, { headMs: 200 })).body), "........");
  },

  "a stream to where nobody listens is refused": async ({ transport, nowhere }) => {
    const outcome = await transport.stream(await nowhere(), GET, LONG);
    assert.ok(outcome.outcome === "refused" && outcome.reason, JSON.stringify(outcome));
  },

  "a stop ends streams, as broken": async ({ transport, listen }) => {
    const peer = await listen(() => "drips");
    const { body } = await open(transport, peer.url);
    const reading = assert.rejects(textOf(body));
    await transport.stop();
    await reading;
  },
};

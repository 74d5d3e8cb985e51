import assert from "node:assert/strict";
import { createSecretKey } from "node:crypto";
import { describe, test } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import {
  readData,
  readReply,
  readRequest,
  writeHeaders,
} from "../../../../src/transport/mesh/message-content.ts";
import {
  FrameReader,
  FrameWriter,
  KIND,
  MeshFault,
  type Message,
} from "../../../../src/transport/mesh/frame.ts";

const key = createSecretKey(Buffer.alloc(32, 7));
const other = createSecretKey(Buffer.alloc(32, 8));

function read(reader: FrameReader, frame: Buffer): Message[] {
  return [...reader.messages(frame)];
}

function sample(writer: FrameWriter): Buffer {
  writer.request(1, "POST", "/a?b=ü", writeHeaders({ "X-A": "1", b: "zwei" })!, 1_500, "grüße");
  writer.reply(2, 201, "", "");
  writer.data(3, Buffer.from("part"), true);
  return writer.take()!;
}

describe("a frame of the mesh", () => {
  test("carries messages as they were written, over many frames and slabs", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 9_000 });
    fc.assert(
      fc.property(
        fc.array(fc.record({ path: text, body: text, end: fc.boolean() }), { maxLength: 40 }),
        (all) => {
          const writer = new FrameWriter(key, 65_536);
          const reader = new FrameReader(key);
          const seen: unknown[] = [];
          for (const [id, { path, body, end }] of all.entries()) {
            writer.request(id, "PUT", path, "h\nv", id, body);
            writer.reply(id, 200 + id, "", body);
            writer.data(id, Buffer.from(body), end);
            if (!end) continue;
            for (const message of read(reader, writer.take()!)) {
              if (message.kind === KIND.request) {
                const request = readRequest(message);
                seen.push([message.id, request.path, request.body, request.deadlineMs, request.headers["h"]]);
              } else if (message.kind === KIND.reply) {
                const { status, bodyAt } = readReply(message);
                seen.push([message.id, status, message.frame.toString("utf8", bodyAt!, message.end)]);
              } else seen.push([message.id, readData(message).chunk.toString(), readData(message).ended]);
            }
          }
          const last = all.findLastIndex(({ end }) => end);
          const expected = all.slice(0, last + 1).flatMap(({ path, body, end }, id) => [
            [id, path, body, id, "v"],
            [id, 200 + id, body],
            [id, body, end],
          ]);
          assert.deepEqual(seen, expected);
        },
      ),
      { numRuns: 50 },
    );
  });

  test("is refused when a bit of it was changed, wherever", () => {
    const frame = sample(new FrameWriter(key, 65_536));
    for (let bit = 0; bit < frame.length * 8; bit += 3) {
      const altered = Buffer.from(frame);
      altered[bit >> 3]! ^= 1 << (bit & 7);
      assert.throws(() => read(new FrameReader(key), altered), MeshFault);
    }
  });

  test("is refused when it comes twice, out of order, after a gap, or under another key", () => {
    const writer = new FrameWriter(key, 65_536);
    const [first, second] = [sample(writer), sample(writer)];
    const reader = new FrameReader(key);
    assert.equal(read(reader, first).length, 3);
    assert.throws(() => read(reader, first), /frame 0 came where 1 was due/);
    assert.throws(() => read(new FrameReader(key), second), /frame 1 came where 0 was due/);
    assert.throws(() => read(new FrameReader(other), first), /seal/);
  });

  test("of garbage is refused and nothing worse", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        assert.throws(() => read(new FrameReader(key), Buffer.from(bytes)), MeshFault);
      }),
    );
  });

  test("whose messages lie about their lengths is refused, also under the right seal", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const frame = Buffer.from(bytes);
        const message = { kind: KIND.request, id: 1, frame, begin: 0, end: frame.length };
        for (const parse of [readRequest, readReply, readData]) {
          try {
            parse(message);
          } catch (error) {
            assert.ok(error instanceof MeshFault, String(error));
          }
        }
      }),
    );
  });

  test("carries no header that HTTP could not", () => {
    assert.equal(writeHeaders({ a: "x\r\nb: y" }), null);
    assert.equal(writeHeaders({ "a\nb": "x" }), null);
    assert.equal(writeHeaders(undefined), "");
  });
});

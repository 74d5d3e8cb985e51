import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../support/fast-check.ts";
import { spanNameOf, traceFields, traceHeaders, traceOf, traceText } from "../../../src/core/trace.ts";

const PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

describe("a trace", () => {
  it("is what the headers of the standard say, and goes back into them", () => {
    assert.equal(traceOf(PARENT), PARENT);
    assert.deepEqual(traceHeaders(PARENT), { traceparent: PARENT });
    const both = traceOf(PARENT, " vendor=a,other=b c ")!;
    assert.deepEqual(traceHeaders(both), { traceparent: PARENT, tracestate: "vendor=a,other=b c" });
    assert.deepEqual(spanNameOf(both), {
      traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
      spanId: "00f067aa0ba902b7",
      flags: 1,
      state: "vendor=a,other=b c",
    });
    assert.deepEqual(traceFields(both), { traceId: "4bf92f3577b34da6a3ce929d0e0e4736" });
    assert.deepEqual(traceFields(null), {});
  });

  it("of a later version of the standard is read as far as it is known", () => {
    assert.equal(traceOf(`cc${PARENT.slice(2)}-what-is-more`), PARENT);
  });

  it("is none when the header is not one", () => {
    const wrong = [
      undefined,
      [PARENT, PARENT],
      "",
      PARENT.toUpperCase(),
      `ff${PARENT.slice(2)}`,
      `${PARENT}-more`,
      `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
      `00-4bf92f3577b34da6a3ce929d0e0e4736-${"0".repeat(16)}-01`,
      `${PARENT} `,
      `cc${PARENT.slice(2)}-${"x".repeat(300)}`,
    ];
    for (const each of wrong) assert.equal(traceOf(each), null, String(each));
  });

  it("goes on without a state that is too long or is no text", () => {
    for (const state of ["x".repeat(513), "a=\nb", "", 7, ["a=b"]])
      assert.equal(traceOf(PARENT, state), PARENT);
  });

  it("is the same after it was taken apart and put together", () => {
    const hex = (length: number): fc.Arbitrary<string> =>
      fc
        .string({
          unit: fc.constantFrom(...Array.from("0123456789abcdef")),
          minLength: length,
          maxLength: length,
        })
        .filter((text) => !/^0+$/.test(text));
    fc.assert(
      fc.property(hex(32), hex(16), fc.integer({ min: 0, max: 255 }), (traceId, spanId, flags) => {
        const text = traceText({ traceId, spanId, flags, state: null });
        assert.equal(traceOf(text), text);
        assert.deepEqual(spanNameOf(text), { traceId, spanId, flags, state: null });
      }),
    );
  });
});

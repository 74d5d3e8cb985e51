import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bytes, count, perSecond, several, short, span } from "../../../src/core/format-figures.ts";

describe("figures", () => {
  const cases: readonly (readonly [(value: never) => string, readonly (readonly [unknown, string])[]])[] = [
    [
      count,
      [
        [0, "0"],
        [999, "999"],
        [1_000, "1,000"],
        [1_234_567, "1,234,567"],
      ],
    ],
    [
      short,
      [
        [0, "0"],
        [9_999, "9999"],
        [10_000, "10k"],
        [48_112, "48.1k"],
        [999_999, "999k"],
        [1_250_000, "1.2M"],
        [3e9, "3G"],
      ],
    ],
    [
      perSecond,
      [
        [null, "-"],
        [undefined, "-"],
        [0, "0/s"],
        [0.04, "0.0/s"],
        [2.34, "2.3/s"],
        [118, "118/s"],
        [12_000, "12k/s"],
      ],
    ],
    [
      span,
      [
        [null, "-"],
        [0, "0ms"],
        [0.4, "0.4ms"],
        [999, "999ms"],
        [1_400, "1.4s"],
        [59_999, "59s"],
        [60_000, "1m"],
        [7_200_000, "2h"],
        [172_800_000, "2d"],
      ],
    ],
    [
      bytes,
      [
        [0, "0 B"],
        [1_023, "1023 B"],
        [1_536, "1.5 KiB"],
        [10 * 2 ** 20, "10.0 MiB"],
        [300 * 2 ** 30, "300 GiB"],
      ],
    ],
  ];
  for (const [write, pairs] of cases) {
    it(`are written by ${write.name} as people read them`, () => {
      for (const [value, text] of pairs) assert.equal(write(value as never), text, String(value));
    });
  }

  it("count things", () => {
    assert.equal(several(1, "job"), "1 job");
    assert.equal(several(0, "job"), "0 jobs");
    assert.equal(several(2_000, "entry", "entries"), "2,000 entries");
  });
});

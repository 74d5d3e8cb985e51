import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bytes, count, perSecond, several, short, span } from "../../../src/core/format-figures.ts";

describe("figures", () => {
  type Row = readonly [write: (value: never) => string, values: readonly unknown[], texts: readonly string[]];
  const rows: readonly Row[] = [
    [count, [0, 999, 1_000, 1_234_567], ["0", "999", "1,000", "1,234,567"]],
    [
      short,
      [0, 9_999, 10_000, 48_112, 999_999, 1_250_000, 3e9],
      ["0", "9999", "10k", "48.1k", "999k", "1.2M", "3G"],
    ],
    [
      perSecond,
      [null, undefined, 0, 0.04, 2.34, 118, 12_000],
      ["-", "-", "0/s", "0.0/s", "2.3/s", "118/s", "12k/s"],
    ],
    [
      span,
      [null, 0, 0.4, 999, 1_400, 59_999, 60_000, 7_200_000, 172_800_000],
      ["-", "0ms", "0.4ms", "999ms", "1.4s", "59s", "1m", "2h", "2d"],
    ],
    [
      bytes,
      [0, 1_023, 1_536, 10 * 2 ** 20, 300 * 2 ** 30],
      ["0 B", "1023 B", "1.5 KiB", "10.0 MiB", "300 GiB"],
    ],
  ];
  for (const [write, values, texts] of rows) {
    it(`are written by ${write.name} as people read them`, () => {
      assert.deepEqual(
        values.map((value) => write(value as never)),
        texts,
      );
    });
  }

  it("count things", () => {
    assert.equal(several(1, "job"), "1 job");
    assert.equal(several(0, "job"), "0 jobs");
    assert.equal(several(2_000, "entry", "entries"), "2,000 entries");
  });
});

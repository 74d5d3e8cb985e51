import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SingleFlight } from "../../../src/platform/single-flight.ts";

describe("a look that is shared", () => {
  function world() {
    const looks: { resolve: (value: number) => void; reject: (error: Error) => void }[] = [];
    const shared = new SingleFlight(
      () => new Promise<number>((resolve, reject) => void looks.push({ resolve, reject })),
    );
    return { looks, shared };
  }
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it("gives to those who come while it lasts one that begins afterwards, the same to all of them", async () => {
    const { looks, shared } = world();
    const first = shared.get();
    const others = [shared.get(), shared.get(), shared.get()];
    assert.equal(looks.length, 1, "never two at once");
    looks[0]!.resolve(1);
    assert.equal(await first, 1);
    await turn();
    assert.equal(looks.length, 2);
    const late = shared.get();
    looks[1]!.resolve(2);
    assert.deepEqual(await Promise.all(others), [2, 2, 2]);
    await turn();
    looks[2]!.resolve(3);
    assert.equal(await late, 3);
  });

  it("begins at once when nobody looks, also after one that failed", async () => {
    const { looks, shared } = world();
    const failing = shared.get();
    const next = shared.get();
    looks[0]!.reject(new Error("away"));
    await assert.rejects(failing, /away/);
    await turn();
    looks[1]!.resolve(2);
    assert.equal(await next, 2);
    const again = shared.get();
    assert.equal(looks.length, 3);
    looks[2]!.resolve(3);
    assert.equal(await again, 3);
  });
});

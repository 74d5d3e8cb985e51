/** The proof of `npm run proof:controllers`, for as long as a test may take. */

import { describe, it } from "node:test";
import { proveControllers } from "../../../proof/controllers/proof.ts";

describe("two node-controllers and some agents", () => {
  it("whose processes are killed and stopped at random lose no job, accept no result twice and nothing stale", async (t) => {
    const lines = await proveControllers(t, { minutes: 0.5, seed: 7, progressMs: 0, say: () => {} });
    for (const line of lines) t.diagnostic(line);
  });
});

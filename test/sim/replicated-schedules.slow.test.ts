import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hasCode } from "../../src/core/errors.ts";
import type { ChaosOptions } from "../support/replica-chaos.ts";
import { ReplicaChaos } from "../support/replica-chaos.ts";

/** Chances of a step: a crash, another leader, a lost call. */
const WEATHER = [
  { crash: 0.002, usurp: 0.002, loss: 0.05 },
  { crash: 0.01, usurp: 0.01, loss: 0.1 },
  { crash: 0.0005, usurp: 0.02, loss: 0.02 },
] as const;

function storm(nodes: number, seed: number): ChaosOptions {
  return { ...WEATHER[seed % WEATHER.length]!, secondsOfChaos: 30, nodes, seed };
}

const FAULTS: Readonly<Record<string, Pick<ChaosOptions, "parts" | "tamper">>> = {
  "one node's word is taken for a majority's": { parts: { required: () => 1 } },
  "nodes heed an old leader": {
    tamper: (disk) => ({
      write: async (batch, term) => {
        try {
          return await disk.scheduleNotes.write(batch, term);
        } catch (error) {
          if (!hasCode(error, "STALE_EPOCH")) throw error;
          return disk.scheduleNotes.write(batch, (await disk.terms.read(term.role))!);
        }
      },
    }),
  },
  "nodes tell a new leader nothing": {
    tamper: (disk) => ({
      read: async () => ({ ...(await disk.scheduleNotes.read("pauses")), notes: [] }),
    }),
  },
};

void describe("schedules of stores that nobody shares", () => {
  for (const nodes of [3, 5]) {
    void test(`of ${nodes} nodes every occurrence makes one job, whatever dies, splits or leads meanwhile`, async () => {
      const total = { occurrences: 0, crashes: 0, terms: 0, lost: 0 };
      for (let seed = 1; seed <= 9; seed++) {
        const counts = await ReplicaChaos.run(storm(nodes, seed));
        for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += counts[key];
      }
      // Otherwise nothing was proved.
      assert.ok(
        total.occurrences > 400 && total.crashes > 20 && total.terms > 100 && total.lost > 50,
        JSON.stringify(total),
      );
    });
  }

  for (const [fault, broken] of Object.entries(FAULTS)) {
    void test(`it would be noticed if ${fault}`, async () => {
      for (let seed = 1; seed <= 40; seed++) {
        try {
          await ReplicaChaos.run({ ...storm(3, seed), ...broken });
        } catch (error) {
          assert.match(
            String(error),
            /has no job|has node-|made two jobs|is gone|has payload|alike|come to rest/,
          );
          return;
        }
      }
      assert.fail("no seed noticed");
    });
  }
});

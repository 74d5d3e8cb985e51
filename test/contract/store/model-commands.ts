/** What a random history is made of: few queues, tasks, keys and leases, so that commands meet. */

import * as fc from "../../support/fast-check.ts";
import type { Outcome } from "../../../src/store/store.ts";
import { ERROR, STOPPED_ERROR } from "../../support/store-world.ts";

const QUEUES = ["a", "b"] as const;
const TASKS = ["x", "y"] as const;

export type Command =
  | {
      do: "submit";
      /** Jobs in one call, with consecutive ids; a job with a key is alone. */
      count: number;
      priority: number;
      queue: string;
      task: string;
      delayMs: number;
      timeoutMs: number | null;
      maxAttempts: number;
      key: string | null;
    }
  | {
      do: "claim";
      limit: number;
      tasks: string[];
      queues: string[] | null;
      except: string | null;
      suspect: boolean;
      lease: string;
      opens: boolean;
      /** Whether the answer gets lost: the claimant does not know of its runs. */
      lost: boolean;
    }
  /** So many runs at once, each with one of the outcomes; `foreign` ones come without what the store keeps with a run. */
  | { do: "settle"; which: number; outcomes: Outcome[]; foreign: boolean }
  | { do: "cancel" | "retry" | "remove" | "report"; which: number }
  | { do: "pause"; queue: string; paused: boolean }
  | { do: "renew"; lease: string }
  | { do: "recover" | "overdue" | "off" }
  | { do: "crash"; lives: string[] }
  | { do: "advance"; ms: number };

const queue = fc.constantFrom(...QUEUES);
const leaseName = fc.constantFrom("node-a/1", "node-a/2/0", "agent:x/r/1");
const lives = fc.constantFrom<string[]>(["1", "2"], ["1", "2"], ["1"], ["2"], ["3"], []);
const which = fc.nat(15);
const outcome = fc.constantFrom<Outcome>(
  { kind: "completed", result: "null" },
  { kind: "completed", result: "null" },
  { kind: "completed", result: "1" },
  { kind: "retry", error: ERROR, delayMs: 0 },
  { kind: "retry", error: ERROR, delayMs: 40 },
  { kind: "failed", error: ERROR, spends: "failure" },
  { kind: "failed", error: ERROR, spends: "interruption" },
  { kind: "cancelled", error: STOPPED_ERROR },
  { kind: "interrupted" },
  { kind: "released" },
);
const often = (weight: number, arbitrary: fc.Arbitrary<unknown>) => ({ weight, arbitrary });
const doing = (...names: readonly Command["do"][]) => ({ do: fc.constantFrom(...names) });

export const COMMANDS = fc.array(
  fc.oneof(
    often(
      5,
      fc.record({
        ...doing("submit"),
        count: fc.constantFrom(1, 1, 2, 5),
        priority: fc.integer({ min: -1, max: 1 }),
        queue,
        task: fc.constantFrom(...TASKS),
        delayMs: fc.constantFrom(0, 0, 30),
        timeoutMs: fc.constantFrom(null, 5),
        maxAttempts: fc.constantFrom(1, 3),
        key: fc.constantFrom(null, null, "k1", "k2"),
      }),
    ),
    often(
      5,
      fc.record({
        ...doing("claim"),
        limit: fc.integer({ min: 0, max: 5 }),
        tasks: fc.constantFrom<string[]>([...TASKS], [...TASKS], ["x"], ["y"], []),
        queues: fc.constantFrom<string[] | null>(null, null, null, ["a"], ["b"], ["a", "b"], []),
        except: fc.constantFrom(null, null, ...QUEUES),
        suspect: fc.constantFrom(true, true, false),
        lease: leaseName,
        opens: fc.constantFrom(true, true, true, false),
        lost: fc.constantFrom(false, false, false, false, false, true),
      }),
    ),
    often(
      6,
      fc.record({
        ...doing("settle"),
        which,
        outcomes: fc.oneof(
          fc.array(outcome, { minLength: 1, maxLength: 4 }),
          fc
            .constantFrom(1, 2, 3, 5)
            .map((n) => Array.from({ length: n }, (): Outcome => ({ kind: "completed", result: "null" }))),
        ),
        foreign: fc.constantFrom(false, false, false, true),
      }),
    ),
    often(6, fc.record({ ...doing("cancel", "retry"), which })),
    often(6, fc.record({ ...doing("report"), which })),
    often(1, fc.record({ ...doing("remove"), which })),
    often(1, fc.record({ ...doing("pause"), queue, paused: fc.boolean() })),
    often(4, fc.record({ ...doing("renew"), lease: leaseName })),
    often(6, fc.record(doing("recover", "overdue"))),
    often(1, fc.record(doing("off"))),
    often(3, fc.record({ ...doing("crash"), lives })),
    often(4, fc.record({ ...doing("advance"), ms: fc.integer({ min: 1, max: 120 }) })),
  ),
  { minLength: 1, maxLength: 100, size: "max" },
) as fc.Arbitrary<Command[]>;

/** What becomes of a time that could not be kept, in words. */

import type { MissedPolicy, OverlapPolicy } from "../../../src/core/schedules/schedule.ts";

export const MISSED_WORDS: Readonly<Record<MissedPolicy, string>> = {
  run_once: "one job for all of them",
  run_all: "one job for each",
  skip: "passed over",
};

export const OVERLAP_WORDS: Readonly<Record<OverlapPolicy, string>> = {
  allow: "the next starts beside it",
  skip: "the next is passed over",
};

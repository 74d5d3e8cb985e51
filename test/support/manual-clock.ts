export { ManualClock, sleepOn } from "../../src/platform/manual-clock.ts";

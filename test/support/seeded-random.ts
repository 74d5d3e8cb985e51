import type { Random } from "../../src/platform/random.ts";

/** A repeatable source (mulberry32) for tests. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  let time = 0;
  const chance = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const hex = (digits: number): string =>
    Array.from({ length: digits }, () => Math.floor(chance() * 16).toString(16)).join("");
  return {
    chance,
    uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`,
    timedUuid: () => {
      const stamp = (++time).toString(16).padStart(12, "0");
      return `${stamp.slice(0, 8)}-${stamp.slice(8)}-7${hex(3)}-a${hex(3)}-${hex(12)}`;
    },
  };
}

import type { Term } from "../../core/leadership/term.ts";
import type { Sample, SampleStore } from "../samples.ts";
import type { MemoryTerms } from "./terms.ts";
import type { Turn } from "./turn.ts";

export class MemorySamples implements SampleStore {
  readonly #terms: MemoryTerms;
  readonly #turn: Turn;
  #samples: Sample[] = [];

  constructor(options: { readonly terms: MemoryTerms; readonly turn: Turn }) {
    this.#terms = options.terms;
    this.#turn = options.turn;
  }

  note(sample: string, fence: Term): Promise<void> {
    return this.#turn((at) => {
      this.#terms.require(fence);
      this.#samples.push({ at, leaderEpoch: fence.epoch, sample });
    });
  }

  list(limit: number): Promise<readonly Sample[]> {
    return this.#turn(() => this.#samples.slice(-limit).reverse());
  }

  purge(ageMs: number, fence: Term): Promise<number> {
    return this.#turn((now) => {
      this.#terms.require(fence);
      const before = this.#samples.length;
      this.#samples = this.#samples.filter(({ at }) => at > now - ageMs);
      return before - this.#samples.length;
    });
  }
}

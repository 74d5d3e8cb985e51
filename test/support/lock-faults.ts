import type { LeaseLock, Tenure } from "../../src/leadership/coordination.ts";
import { Feed } from "../../src/platform/feed.ts";
import type { NodeIdentity } from "../../src/core/node.ts";
import type { Term } from "../../src/core/leadership/term.ts";

/**
 * - `throws`: the call does not reach the backend, and says so.
 * - `hangs`: it does not reach the backend, and no answer ever comes.
 * - `loses the reply`: it is carried out, and rejects.
 * - `answers late`: it is carried out at once, and answers when `answer()` is called.
 * - `arrives late`: it is carried out, and answers, when `answer()` is called.
 */
export type Fault = "throws" | "hangs" | "loses the reply" | "answers late" | "arrives late";
type Call = "acquire" | "renew" | "release" | "read";

/** One node's way to a lock, which can be made to fail. Counts the calls. */
export class FaultyLock implements LeaseLock {
  readonly #inner: LeaseLock;
  readonly #faults = new Map<Call, Fault>();
  readonly #waiting: (() => void)[] = [];
  readonly #hints = new Feed<void>();
  readonly calls: Record<Call, number> = { acquire: 0, renew: 0, release: 0, read: 0 };
  /** Calls under way now and at most, by kind. */
  readonly #inFlight: Record<Call, number> = { acquire: 0, renew: 0, release: 0, read: 0 };
  readonly inFlightMax: Record<Call, number> = { acquire: 0, renew: 0, release: 0, read: 0 };

  constructor(inner: LeaseLock) {
    this.#inner = inner;
  }

  break(fault: Fault, ...calls: Call[]): void {
    for (const call of calls) this.#faults.set(call, fault);
  }

  mend(): void {
    this.#faults.clear();
  }

  answer(): void {
    for (const go of this.#waiting.splice(0)) go();
  }

  acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    return this.#through("acquire", () => this.#inner.acquire(candidate, ttlMs));
  }

  renew(term: Term, ttlMs: number): Promise<boolean> {
    return this.#through("renew", () => this.#inner.renew(term, ttlMs));
  }

  release(term: Term): Promise<void> {
    return this.#through("release", () => this.#inner.release(term));
  }

  read(): Promise<Term | null> {
    return this.#through("read", () => this.#inner.read());
  }

  tenure(): Promise<Tenure | null> {
    return this.#through("read", () => this.#inner.tenure());
  }

  /** The backend's hints, and those of `hint()`. */
  released(signal: AbortSignal): AsyncIterable<void> {
    const hints = this.#hints.follow(signal);
    void this.#pass(this.#inner.released(signal));
    return hints;
  }

  /** For this node alone. */
  hint(): void {
    this.#hints.push();
  }

  async #pass(hints: AsyncIterable<void>): Promise<void> {
    for await (const _ of hints) this.hint();
  }

  async #through<Value>(call: Call, carryOut: () => Promise<Value>): Promise<Value> {
    this.calls[call] += 1;
    this.#inFlight[call] += 1;
    this.inFlightMax[call] = Math.max(this.inFlightMax[call], this.#inFlight[call]);
    try {
      return await this.#faulty(this.#faults.get(call), carryOut);
    } finally {
      this.#inFlight[call] -= 1;
    }
  }

  async #faulty<Value>(fault: Fault | undefined, carryOut: () => Promise<Value>): Promise<Value> {
    const turn = (): Promise<void> => new Promise((go) => this.#waiting.push(go));
    switch (fault) {
      case undefined:
        return carryOut();
      case "throws":
        throw new Error("the backend is away");
      case "hangs":
        return new Promise<Value>(() => {});
      case "loses the reply":
        await carryOut();
        throw new Error("the connection broke before the answer");
      case "answers late": {
        const value = await carryOut();
        await turn();
        return value;
      }
      case "arrives late":
        await turn();
        return carryOut();
    }
  }
}

import type { LeaseLock } from "../../src/leadership/coordination.ts";
import { Elector, type LeaderGate, type ElectorSettings } from "../../src/leadership/elector.ts";
import type { Term } from "../../src/core/leadership/term.ts";
import { ManualClock } from "./manual-clock.ts";
import { seededRandom } from "./seeded-random.ts";
import { candidate } from "./lock-candidates.ts";
import { FaultyLock } from "./lock-faults.ts";
import { MemoryLeaseLock, newLockState } from "./lock-memory.ts";
import { ROLE } from "./lock-world.ts";
import { ProcessClock } from "./process-clock.ts";

export const SETTINGS: ElectorSettings = { leaseMs: 4_000, renewMs: 1_000, marginMs: 1_000, retryMs: 500 };

interface StanderOptions {
  /** Of its clocks, against the world's. */
  readonly rate?: number;
  readonly settings?: ElectorSettings;
  readonly stands?: () => boolean;
  readonly gate?: LeaderGate;
}

export interface Stander {
  readonly name: string;
  readonly elector: Elector;
  readonly clock: ProcessClock;
  readonly lock: FaultyLock;
  /** What `changes()` reported so far: epochs, and null where a term ended. */
  readonly heard: (number | null)[];
  readonly logged: string[];
}

export type Leading = Stander & { readonly term: Term };

/** Electors of several nodes over one reference lock, in a world whose time moves by hand. */
export class Election implements AsyncDisposable {
  readonly world = new ManualClock();
  readonly #state = newLockState();
  readonly #standers: Stander[] = [];
  readonly #over = new AbortController();

  /** The backend itself, as nobody's in particular. */
  get lock(): LeaseLock {
    return new MemoryLeaseLock(ROLE, this.world, this.#state);
  }

  stander(name: string, options: StanderOptions = {}): Stander {
    const clock = new ProcessClock(this.world, { rate: options.rate });
    const lock = new FaultyLock(this.lock);
    const logged: string[] = [];
    const note = (_fields: object, message: string): void => void logged.push(message);
    const elector = new Elector({
      lock,
      identity: candidate(name),
      role: ROLE,
      clock,
      random: seededRandom(this.#standers.length),
      settings: options.settings ?? SETTINGS,
      log: { info: note, warn: note, error: note },
      ...(options.stands && { stands: options.stands }),
      gate: options.gate,
    });
    const heard: (number | null)[] = [];
    void this.#note(elector.changes(this.#over.signal), heard);
    const stander: Stander = { name, elector, clock, lock, heard, logged };
    this.#standers.push(stander);
    return stander;
  }

  /** A stander that leads, with the term. */
  async leader(name: string, options: StanderOptions = {}): Promise<Leading> {
    const stander = this.stander(name, options);
    await stander.elector.start();
    await this.pass(0);
    return { ...stander, term: stander.elector.require() };
  }

  /** An election that ada leads, with bob standing by. */
  static async contested(): Promise<AsyncDisposable & { election: Election; ada: Leading; bob: Stander }> {
    const election = new Election();
    const ada = await election.leader("ada");
    const bob = election.stander("bob");
    await bob.elector.start();
    return { election, ada, bob, [Symbol.asyncDispose]: () => election[Symbol.asyncDispose]() };
  }

  pass(ms: number): Promise<void> {
    return this.world.advance(ms);
  }

  async #note(changes: AsyncIterable<Term | null>, heard: (number | null)[]): Promise<void> {
    for await (const term of changes) heard.push(term?.epoch ?? null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    const stops = this.#standers.map((stander) => {
      stander.clock.wake();
      stander.clock.resume();
      return stander.elector.stop();
    });
    // Longer than any deadline of an elector.
    await this.pass(2 * SETTINGS.leaseMs);
    await Promise.all(stops);
  }
}

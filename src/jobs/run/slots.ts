/**
 * The slots of a worker: as many runs as may be under way. A run that waits for another job gives its slot away meanwhile, or parents would
 * hold all slots and wait for children that nobody may start. Afterwards it goes before all jobs that have not begun.
 *
 *   take ──> in a slot ──> leave
 *              |    ^
 *         wait v    | all its waits are over, and a slot is free or it is to stop
 *              away
 */

interface Away {
  /** A handler may wait for several jobs at once. */
  waits: number;
  /** Set while it waits for a slot. */
  resume: (() => void) | null;
}

export class Slots<Run extends { readonly aborted: object | null }> {
  readonly #count: number;
  #occupied = 0;
  /** Runs without a slot, those that have waited longest first. */
  readonly #away = new Map<Run, Away>();

  constructor(count: number) {
    this.#count = count;
  }

  get free(): boolean {
    return this.#occupied < this.#count;
  }

  /** Whether a run waits for a slot. */
  get wanted(): boolean {
    if (this.#away.size === 0) return false; // asked after every job, and nearly always so
    for (const { resume } of this.#away.values()) if (resume) return true;
    return false;
  }

  get away(): number {
    return this.#away.size;
  }

  take(): void {
    this.#occupied++;
  }

  /** A run that waits for a slot gets this one. */
  leave(): void {
    if (this.wanted) for (const [run, away] of this.#away) if (away.resume) return this.#back(run, away);
    this.#occupied--;
  }

  /** `onLeft`: the run has no slot now. */
  async wait<Answer>(run: Run, work: () => Promise<Answer>, onLeft: () => void): Promise<Answer> {
    const away = this.#away.get(run) ?? { waits: 0, resume: null };
    away.waits++;
    if (!this.#away.has(run)) {
      this.#away.set(run, away);
      this.leave();
      onLeft();
    } else if (away.resume) this.#goOn(away); // it is away for this wait anyway
    try {
      return await work();
    } finally {
      away.waits--;
      if (away.waits === 0 && this.#away.get(run) === away) await this.#comeBack(run, away);
    }
  }

  /** A run that is to stop does not wait for a slot in order to tidy up. */
  hurry(run: Run): void {
    const away = this.#away.get(run);
    if (!away?.resume) return;
    this.take();
    this.#back(run, away);
  }

  /** It has ended, or was given up. True when it was away, and so has no slot to leave. */
  forget(run: Run): boolean {
    return this.#away.delete(run);
  }

  async #comeBack(run: Run, away: Away): Promise<void> {
    if (this.free || run.aborted) {
      this.take();
      this.#back(run, away);
    } else await new Promise<void>((resolve) => (away.resume = resolve));
  }

  #back(run: Run, away: Away): void {
    this.#away.delete(run);
    this.#goOn(away);
  }

  #goOn(away: Away): void {
    away.resume?.();
    away.resume = null;
  }
}

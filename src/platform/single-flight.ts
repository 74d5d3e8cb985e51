/**
 * One look at something for all who ask at about the same time. Whoever asks gets a look that begins after the question, so that nobody
 * misses what they wrote before; never two at once, however many ask.
 */
export class SingleFlight<Value> {
  readonly #look: () => Promise<Value>;
  #now: Promise<Value> | null = null;
  #next: Promise<Value> | null = null;

  constructor(look: () => Promise<Value>) {
    this.#look = look;
  }

  get(): Promise<Value> {
    if (!this.#now) return this.#begin();
    return (this.#next ??= this.#now.then(
      () => this.#begin(),
      () => this.#begin(),
    ));
  }

  #begin(): Promise<Value> {
    this.#next = null;
    const now = this.#look().finally(() => {
      if (this.#now === now) this.#now = null;
    });
    this.#now = now;
    return now;
  }
}

/**
 * One read of something for all callers at about the same time. Each caller gets a read that begins after its call, so
 * that it sees its own earlier writes. Two reads never run at once, however many callers there are.
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

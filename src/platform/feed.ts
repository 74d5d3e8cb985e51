/**
 * One stream of values for several followers. Each follower receives every value that is pushed after it began to
 * follow, in order and one by one, however slowly it reads.
 */
export class Feed<Value> {
  readonly #followers = new Set<Follower<Value>>();

  push(value: Value): void {
    for (const follower of this.#followers) follower.push(value);
  }

  /**
   * Following begins with this call, not with the first read: nothing falls between the two. It ends with the
   * signal; what was pushed before that is still read.
   */
  follow(signal: AbortSignal, first: readonly Value[] = []): AsyncIterableIterator<Value> {
    const follower = new Follower<Value>(signal, first, () => this.#followers.delete(follower));
    if (!signal.aborted) this.#followers.add(follower);
    return follower;
  }
}

class Follower<Value> implements AsyncIterableIterator<Value> {
  readonly #values: Value[];
  readonly #readers: ((result: IteratorResult<Value, undefined>) => void)[] = [];
  readonly #leave: () => void;
  #over: boolean;

  constructor(signal: AbortSignal, first: readonly Value[], leave: () => void) {
    const end = (): void => this.#end();
    this.#values = [...first];
    this.#over = signal.aborted;
    this.#leave = () => {
      signal.removeEventListener("abort", end);
      leave();
    };
    if (!this.#over) signal.addEventListener("abort", end, { once: true });
  }

  push(value: Value): void {
    const reader = this.#readers.shift();
    if (reader) reader({ done: false, value });
    else this.#values.push(value);
  }

  next(): Promise<IteratorResult<Value, undefined>> {
    if (this.#values.length > 0) return Promise.resolve({ done: false, value: this.#values.shift()! });
    if (this.#over) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  return(): Promise<IteratorResult<Value, undefined>> {
    this.#values.length = 0;
    this.#end();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #end(): void {
    this.#over = true;
    this.#leave();
    for (const reader of this.#readers.splice(0)) reader({ done: true, value: undefined });
  }
}

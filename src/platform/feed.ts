/**
 * One stream of values for several followers. Each receives every value that is pushed after it began to follow, in order, however slowly it
 * reads, unless a limit says what is dropped.
 */

export interface UnreadLimit<Value> {
  readonly max: number;
  /** What stays of them when there are so many, before the next one. */
  readonly kept: (unread: readonly Value[], next: Value) => readonly Value[];
}

export class Feed<Value> {
  readonly #followers = new Set<Follower<Value>>();
  readonly #limit: UnreadLimit<Value> | null;

  constructor(limit: UnreadLimit<Value> | null = null) {
    this.#limit = limit;
  }

  get followers(): number {
    return this.#followers.size;
  }

  push(value: Value): void {
    for (const follower of this.#followers) follower.push(value);
  }

  /** Following begins with this call, not with the first read. It ends with the signal; what was pushed before that is still read. */
  follow(signal: AbortSignal, first: readonly Value[] = []): AsyncIterableIterator<Value> {
    const follower = new Follower<Value>(signal, first, this.#limit, () => this.#followers.delete(follower));
    if (!signal.aborted) this.#followers.add(follower);
    return follower;
  }
}

class Follower<Value> implements AsyncIterableIterator<Value> {
  #values: Value[];
  readonly #limit: UnreadLimit<Value> | null;
  readonly #readers: ((result: IteratorResult<Value, undefined>) => void)[] = [];
  readonly #leave: () => void;
  #over: boolean;

  constructor(
    signal: AbortSignal,
    first: readonly Value[],
    limit: UnreadLimit<Value> | null,
    leave: () => void,
  ) {
    const end = (): void => this.#end();
    this.#limit = limit;
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
    if (reader) return reader({ done: false, value });
    const limit = this.#limit;
    if (limit && this.#values.length >= limit.max) this.#values = [...limit.kept(this.#values, value)];
    this.#values.push(value);
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

/** One event of a stream, as `text/event-stream` has it. */
export interface ServerEvent {
  readonly event: string;
  /** Where a reader that lost its connection goes on. */
  readonly id?: string;
  readonly data: unknown;
}

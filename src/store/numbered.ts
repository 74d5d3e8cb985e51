/** Values that rows name by a small number. They are found by the number, and by what `keyOf` says of them. */
export class Numbered<Value extends Key, Key = Value> {
  readonly #keyOf: (key: Key) => string;
  readonly #values = new Map<number, Value>();
  readonly #ids = new Map<string, number>();

  constructor(keyOf: (key: Key) => string) {
    this.#keyOf = keyOf;
  }

  get size(): number {
    return this.#values.size;
  }

  idOf(key: Key): number | undefined {
    return this.#ids.get(this.#keyOf(key));
  }

  get(id: number): Value | undefined {
    return this.#values.get(id);
  }

  all(): Value[] {
    return [...this.#values.values()];
  }

  add(id: number, value: Value): number {
    this.#values.set(id, value);
    this.#ids.set(this.#keyOf(value), id);
    return id;
  }

  clear(): void {
    this.#values.clear();
    this.#ids.clear();
  }
}

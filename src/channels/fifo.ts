/** First in, first out. Taking from the front of a plain array costs its whole length; here it costs one step. */
export class Fifo<Item> {
  #items: Item[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  take(max: number): Item[] {
    const taken = this.#items.slice(this.#head, this.#head + max);
    this.#head += taken.length;
    // Half of it is used up: moving the rest now costs no more than what was taken since the last time.
    if (this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return taken;
  }

  putBack(items: readonly Item[]): void {
    this.#items = [...items, ...this.#items.slice(this.#head)];
    this.#head = 0;
  }
}

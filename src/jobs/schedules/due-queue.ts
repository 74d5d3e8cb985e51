/**
 * Names in the order of their due times (a binary heap). Thousands of schedules cost a few comparisons each time one
 * fires. Setting a name again leaves its old position behind as a dead entry, which is dropped when it reaches the top.
 */

interface Entry {
  readonly name: string;
  readonly at: number;
}

export class DueQueue {
  #heap: Entry[] = [];
  readonly #live = new Map<string, Entry>();

  get size(): number {
    return this.#live.size;
  }

  set(name: string, at: number): void {
    if (this.#live.get(name)?.at === at) return;
    const entry = { name, at };
    this.#live.set(name, entry);
    this.#heap.push(entry);
    this.#rise(this.#heap.length - 1);
    this.#tidy();
  }

  delete(name: string): void {
    this.#live.delete(name);
    this.#tidy();
  }

  /** When the first falls due; null when there is none. */
  nextAt(): number | null {
    for (let top = this.#heap[0]; top; top = this.#heap[0]) {
      if (this.#live.get(top.name) === top) return top.at;
      this.#drop();
    }
    return null;
  }

  /** Takes out all that are due, the earliest first. */
  take(now: number): string[] {
    const due: string[] = [];
    for (let at = this.nextAt(); at !== null && at <= now; at = this.nextAt()) {
      const { name } = this.#heap[0]!;
      this.#live.delete(name);
      this.#drop();
      due.push(name);
    }
    return due;
  }

  /** Keeps dead entries from outnumbering the living. */
  #tidy(): void {
    if (this.#heap.length <= 2 * this.#live.size + 64) return;
    this.#heap = [...this.#live.values()].sort((a, b) => a.at - b.at);
  }

  #drop(): void {
    const last = this.#heap.pop()!;
    if (this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#sink(0);
  }

  #rise(start: number): void {
    const heap = this.#heap;
    let index = start;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (heap[parent]!.at <= heap[index]!.at) return;
      [heap[parent], heap[index]] = [heap[index]!, heap[parent]!];
      index = parent;
    }
  }

  #sink(start: number): void {
    const heap = this.#heap;
    for (let index = start; ;) {
      const left = 2 * index + 1;
      let least = index;
      if (left < heap.length && heap[left]!.at < heap[least]!.at) least = left;
      if (left + 1 < heap.length && heap[left + 1]!.at < heap[least]!.at) least = left + 1;
      if (least === index) return;
      [heap[least], heap[index]] = [heap[index]!, heap[least]!];
      index = least;
    }
  }
}

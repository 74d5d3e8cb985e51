/**
 * An ordered queue of waiting entries: the first one is found at once, and any entry can be removed (cancelled,
 * removed). A binary heap; each entry knows its position, so that removing costs no more than adding.
 */

export interface Member {
  /** Index in the line that it stands in; only the line writes it. */
  place: number;
}

export class QueueOrder<T extends Member> {
  readonly #before: (a: T, b: T) => boolean;
  readonly #heap: T[] = [];

  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  get first(): T | undefined {
    return this.#heap[0];
  }

  /** In no order, as they stand now: they may leave while one goes through them. */
  members(): readonly T[] {
    return [...this.#heap];
  }

  join(member: T): void {
    this.#heap.push(member);
    this.#rise(this.#heap.length - 1, member);
  }

  leave(member: T): void {
    if (this.#heap[member.place] !== member) throw new Error("left a line that it does not stand in");
    const last = this.#heap.pop()!;
    if (last === member) return;
    const place = this.#rise(member.place, last);
    this.#sink(place, last);
  }

  #rise(from: number, member: T): number {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!this.#before(member, this.#heap[parent]!)) break;
      this.#put(place, this.#heap[parent]!);
      place = parent;
    }
    this.#put(place, member);
    return place;
  }

  #sink(from: number, member: T): void {
    let place = from;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= this.#heap.length) break;
      if (child + 1 < this.#heap.length && this.#before(this.#heap[child + 1]!, this.#heap[child]!)) child++;
      if (!this.#before(this.#heap[child]!, member)) break;
      this.#put(place, this.#heap[child]!);
      place = child;
    }
    this.#put(place, member);
  }

  #put(place: number, member: T): void {
    this.#heap[place] = member;
    member.place = place;
  }
}

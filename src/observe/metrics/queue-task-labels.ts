/**
 * The labels for queue and task. The number of pairs is limited, because each pair adds some forty lines to every
 * scrape.
 */

const KINDS_MAX = 100;
export const OTHER = "other";

export interface QueueTaskPair {
  readonly queue: string;
  readonly task: string;
}

export class QueueTaskLabels<Counted> {
  readonly #make: () => Counted;
  readonly #byQueue = new Map<string, Map<string, Counted>>();
  readonly #all: { readonly labels: QueueTaskPair; readonly counted: Counted }[] = [];
  #other: Counted | null = null;

  constructor(make: () => Counted) {
    this.#make = make;
  }

  /** The same object each time. Those that come when there are enough share one. */
  of(queue: string, task: string): Counted {
    return this.#byQueue.get(queue)?.get(task) ?? this.#add(queue, task);
  }

  all(): readonly { readonly labels: QueueTaskPair; readonly counted: Counted }[] {
    return this.#all;
  }

  #add(queue: string, task: string): Counted {
    if (this.#all.length >= KINDS_MAX) return (this.#other ??= this.#note({ queue: OTHER, task: OTHER }));
    const counted = this.#note({ queue, task });
    const tasks = this.#byQueue.get(queue);
    if (tasks) tasks.set(task, counted);
    else this.#byQueue.set(queue, new Map([[task, counted]]));
    return counted;
  }

  #note(labels: QueueTaskPair): Counted {
    const counted = this.#make();
    this.#all.push({ labels, counted });
    return counted;
  }
}

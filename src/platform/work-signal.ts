type Listener = (jobs?: readonly { readonly task: string }[]) => void;

/**
 * "There may be work": raised with the jobs that were stored, or without when it could be any. Only a hint: those who listen also look by
 * themselves now and then. Listeners are called at once, in the order in which they subscribed.
 */
export class WorkSignal {
  readonly #listeners: Listener[] = [];

  readonly raise: Listener = (jobs) => {
    for (const listener of this.#listeners) listener(jobs);
  };

  subscribe(listener: Listener): void {
    this.#listeners.push(listener);
  }
}

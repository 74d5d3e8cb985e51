type Listener = (jobs?: readonly { readonly task: string }[]) => void;

/**
 * "There may be work": raised with the jobs that were stored, or without when it could be any. Only a hint, given at once and in the order
 * of subscription.
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

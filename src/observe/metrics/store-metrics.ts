import type { Instruments, Reading } from "./instruments.ts";

/** Calls of the store that did not succeed, by who made them; each is tried again by whoever it was. */
export function describeStoreErrors(
  instruments: Instruments,
  errors: () => Readonly<Record<string, number>>,
): void {
  instruments.counter(
    {
      name: "baton_store_errors_total",
      help: "Calls of the store that did not succeed. claim: the worker asked for jobs; results: it brought them; submit: new jobs were to be stored; backlog: a look for metrics.",
    },
    () => Object.entries(errors()).map(([call, count]): Reading => [{ call }, count]),
  );
}

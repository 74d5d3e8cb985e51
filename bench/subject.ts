/**
 * What is measured. Baton and the hand-written floors offer the same few verbs, so that one and the same loop drives
 * them; everything between the verb and the disk is theirs.
 */

export interface Payload {
  readonly n: number;
  /** When the submit was called, on the clock of `nowMs`. */
  readonly t: number;
  readonly pad: string;
}

export type Handler = (payload: Payload) => Promise<void>;

export interface Subject {
  /** Back to an empty store, with nobody at work. */
  reset(): Promise<void>;
  /** Resolves when the job is durable. */
  submit(payload: Payload): Promise<unknown>;
  submitMany(payloads: readonly Payload[]): Promise<unknown>;
  /** Jobs pile up until this is called, and run from then on until the next reset. */
  work(handler: Handler): void | Promise<void>;
  /** Jobs that start from now on wait for the next `work`. */
  rest?(): void;
  /** Waiting and running jobs, as the store says. */
  unfinished(): number | Promise<number>;
  close(): Promise<void>;
}

/** Monotonic, and the same clock in every process of a machine. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** With its two numbers the payload has about 200 bytes of JSON. */
const PAD = "x".repeat(160);

export function payload(n: number): Payload {
  return { n, t: nowMs(), pad: PAD };
}

export function payloads(count: number): Payload[] {
  return Array.from({ length: count }, (_, n) => payload(n));
}

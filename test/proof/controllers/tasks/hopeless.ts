import { noteRun, type Context } from "../run-notes.ts";

/** Fails for good. */
export default function hopeless(_payload: unknown, context: Context): never {
  noteRun(context);
  throw Object.assign(new Error("it cannot be done"), { retryable: false });
}

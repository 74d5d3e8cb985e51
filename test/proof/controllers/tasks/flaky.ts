import { noteRun, type Context } from "../run-notes.ts";

/** Fails until a failure of it was accepted. */
export default function flaky(_payload: unknown, context: Context): unknown {
  const noted = noteRun(context);
  if (context.job.failures === 0) throw new Error("the first time always fails");
  return noted;
}

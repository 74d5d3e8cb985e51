import { noteRun, type Context } from "../run-notes.ts";

/** Done at once. */
export default function quick(_payload: unknown, context: Context): unknown {
  return noteRun(context);
}

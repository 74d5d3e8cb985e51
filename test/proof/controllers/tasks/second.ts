import { setTimeout as sleep } from "node:timers/promises";
import { noteRun, type Context } from "../run-notes.ts";

/** Takes a while, so that processes are killed in the middle of it. */
export default async function second({ ms }: { readonly ms: number }, context: Context): Promise<unknown> {
  const noted = noteRun(context);
  await sleep(ms, undefined, { signal: context.signal });
  return noted;
}

import { setTimeout as sleep } from "node:timers/promises";

export const isolation = "thread";

/** Ends its thread in one of the ways in which user code does. */
export default async function die(how: string): Promise<string> {
  if (how === "exit") process.exit(7);
  if (how === "throw") {
    setTimeout(() => {
      throw new Error("from a timer");
    }, 1);
  }
  if (how === "reject") void Promise.reject(new Error("nobody waits for me"));
  await sleep(5_000);
  return "survived";
}

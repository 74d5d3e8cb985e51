import { setTimeout as sleep } from "node:timers/promises";

interface Chatter {
  readonly lines: number;
  readonly everyMs: number;
}

/** Writes a line now and then, each with its number. */
export default async function chatter(
  { lines, everyMs }: Chatter,
  { log }: { readonly log: (text: string) => void },
): Promise<number> {
  for (let n = 1; n <= lines; n++) {
    await sleep(everyMs);
    log(String(n));
  }
  return lines;
}

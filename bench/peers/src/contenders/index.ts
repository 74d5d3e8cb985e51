import type { Entry } from "../types.ts";

const MODULES = ["bullmq", "pgboss", "graphile", "pg-floor", "sqlite-floor", "redis-floor"];

export interface Listed extends Entry {
  /** URL of the module that exports it; a child process loads that one only. */
  module: string;
}

/** Every contender. `added` are URLs of modules given with --add; each exports `entries: Entry[]`. */
export async function loadEntries(added: string[]): Promise<Listed[]> {
  const urls = [...added, ...MODULES.map((m) => new URL(`./${m}.ts`, import.meta.url).href)];
  const lists = await Promise.all(
    urls.map(async (module) =>
      ((await import(module)) as { entries: Entry[] }).entries.map((e) => ({ ...e, module })),
    ),
  );
  return lists.flat();
}

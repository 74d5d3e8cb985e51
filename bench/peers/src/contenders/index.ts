import type { Entry } from "../types.ts";

const MODULES = ["bullmq", "pgboss", "graphile", "pg-floor", "pg-range", "sqlite-floor", "redis-floor"];

export interface Listed extends Entry {
  /** URL of the module that exports it; a child process loads that one only. */
  module: string;
  /** Its name there. */
  exported: string;
}

/**
 * Every contender. `added` are URLs of modules given with --add; each exports `entries: Entry[]`. Those of `before`, the module of an
 * earlier version, get other names: `baton-pg@before`.
 */
export async function loadEntries(added: string[], before: string | undefined): Promise<Listed[]> {
  const urls = [...added, ...MODULES.map((m) => new URL(`./${m}.ts`, import.meta.url).href)];
  const lists = await Promise.all(urls.map((url) => entriesOf(url, "")));
  return [...lists.flat(), ...(before ? await entriesOf(before, "@before") : [])];
}

async function entriesOf(module: string, suffix: string): Promise<Listed[]> {
  const { entries } = (await import(module)) as { entries: Entry[] };
  return entries.map((e) => ({ ...e, name: e.name + suffix, exported: e.name, module }));
}

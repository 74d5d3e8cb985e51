import { openMemoryStore } from "../../../src/store/memory/memory.ts";
import { SqliteStore } from "../../../src/store/sqlite/sqlite.ts";
import { fencedContract } from "./fenced.ts";

fencedContract("memory", async ({ clock }) => {
  const store = openMemoryStore({ clock });
  await store.start();
  return store;
});

fencedContract("sqlite", async ({ clock, dir }) => {
  const store = new SqliteStore({ clock, dir });
  await store.start();
  return store;
});

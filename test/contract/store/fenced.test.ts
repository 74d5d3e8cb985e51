import { MemoryStore } from "../../../src/store/memory/store.ts";
import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import { fencedContract } from "./fenced.ts";

fencedContract("memory", async ({ clock }) => {
  const store = new MemoryStore({ clock });
  return store;
});

fencedContract("sqlite", async ({ clock, dir }) => {
  const store = await openSqliteStore({ clock, dir });
  return store;
});

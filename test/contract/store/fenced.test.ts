import { memoryStore } from "../../support/memory-store.ts";
import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import { fencedContract } from "./fenced.ts";

fencedContract("memory", async ({ clock }) => {
  const store = memoryStore({ clock });
  return store;
});

fencedContract("sqlite", async ({ clock, dir }) => {
  const store = await openSqliteStore({ clock, dir });
  return store;
});

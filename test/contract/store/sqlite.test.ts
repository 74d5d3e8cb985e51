import { SqliteStore } from "../../../src/store/sqlite/sqlite.ts";
import { storeContract } from "./contract.ts";

storeContract(
  "sqlite",
  async ({ clock, dir }) => {
    const store = new SqliteStore({ dir, clock });
    await store.start();
    return store;
  },
  { reopens: true },
);

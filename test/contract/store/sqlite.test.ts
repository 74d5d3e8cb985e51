import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import { storeContract } from "./contract.ts";

storeContract(
  "sqlite",
  async ({ clock, dir }) => {
    const store = await openSqliteStore({ dir, clock });
    return store;
  },
  { reopens: true },
);
